#ifndef TENSORD_SERVER_LIFECYCLE_CONNECTION_BOUNDS_H_
#define TENSORD_SERVER_LIFECYCLE_CONNECTION_BOUNDS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/mutex.h"
#include "server/lifecycle/frame_meter.h"

namespace tensord::server {

// What each connection of a server may cost, and how many were ended because they went beyond it. Shared by the
// connections and the server; thread-safe.
class ConnectionBounds {
 public:
  // Told of connections that were ended since the last time, and of the last of them: at once of the first, and then
  // not more often than every kTellEvery.
  using Tell = std::function<void(FrameExcess excess, const std::string& peer, int64_t ended)>;
  static constexpr std::chrono::seconds kTellEvery{10};

  struct Ended {
    int64_t for_headers = 0;
    int64_t for_cancels = 0;
  };

  explicit ConnectionBounds(const FrameLimits& limits) : limits_(limits) {}
  ConnectionBounds(const ConnectionBounds&) = delete;
  ConnectionBounds& operator=(const ConnectionBounds&) = delete;

  const FrameLimits& limits() const { return limits_; }

  // Null: nobody is told any more, and whoever is being told returns first.
  void SetTell(Tell tell);
  void Exceeded(FrameExcess excess, const std::string& peer);
  // Since the start.
  Ended ended() const;

 private:
  const FrameLimits limits_;
  mutable Mutex mutex_;
  Ended ended_ ABSL_GUARDED_BY(mutex_);
  int64_t untold_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point told_ ABSL_GUARDED_BY(mutex_) = std::chrono::steady_clock::time_point::min();
  Tell tell_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_CONNECTION_BOUNDS_H_
