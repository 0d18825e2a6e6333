#ifndef TENSORD_SERVER_CONNECTIONS_CONNECTION_BOUNDS_H_
#define TENSORD_SERVER_CONNECTIONS_CONNECTION_BOUNDS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/mutex.h"
#include "server/connections/connection_excess.h"
#include "server/connections/frame_meter.h"

namespace tensord::server {

// The cost that each connection of a server may have, and the number of connections ended for more. Shared by the
// connections and the server; thread-safe.
class ConnectionBounds {
 public:
  // Told of connections that were ended since the last time, and of the last of them: at once of the first, and then
  // not more often than every kTellEvery.
  using Tell = std::function<void(ConnectionExcess excess, const std::string& peer, int64_t ended)>;
  static constexpr std::chrono::seconds kTellEvery{10};

  struct Ended {
    int64_t for_headers = 0;
    int64_t for_cancels = 0;
    int64_t for_frames = 0;
    int64_t for_settings = 0;
    int64_t for_unread = 0;
  };

  // `most_unread`: how long answers may wait for a client that does not read; zero: for ever.
  explicit ConnectionBounds(const FrameLimits& limits,
                            std::chrono::milliseconds most_unread = std::chrono::milliseconds::zero())
      : limits_(limits), most_unread_(most_unread) {}
  ConnectionBounds(const ConnectionBounds&) = delete;
  ConnectionBounds& operator=(const ConnectionBounds&) = delete;

  const FrameLimits& limits() const { return limits_; }
  std::chrono::milliseconds most_unread() const { return most_unread_; }

  // Sets the function to tell. Null: it is not called any more, and a call in progress returns first.
  void SetTell(Tell tell);
  void Exceeded(ConnectionExcess excess, const std::string& peer);
  // Since the start.
  Ended ended() const;

 private:
  const FrameLimits limits_;
  const std::chrono::milliseconds most_unread_;
  mutable Mutex mutex_;
  Ended ended_ ABSL_GUARDED_BY(mutex_);
  int64_t untold_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point told_ ABSL_GUARDED_BY(mutex_) = std::chrono::steady_clock::time_point::min();
  Tell tell_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_CONNECTION_BOUNDS_H_
