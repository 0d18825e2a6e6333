#ifndef TENSORD_SERVER_LIFECYCLE_CALL_GATE_H_
#define TENSORD_SERVER_LIFECYCLE_CALL_GATE_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tensord::server {

// kStarting → kServing → kDraining → kStopped; from any of them to kStopped.
enum class ServingState : uint8_t { kStarting, kServing, kDraining, kStopped };

// Where calls come in and go out: the state of the server, and how many calls with how many bytes are inside.
// Thread-safe.
class CallGate {
 public:
  struct Snapshot {
    ServingState state = ServingState::kStarting;
    int64_t calls = 0;
    int64_t bytes = 0;
  };

  explicit CallGate(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Moves on. Asking for an earlier state, or the same, changes nothing and returns false.
  bool MoveTo(ServingState state);

  // Counts a call in, whose request has that many bytes. SERVER_DRAINING unless the server is serving; LIMIT_EXCEEDED
  // where the requests inside would be too large together. After OK comes one Leave with the same size.
  absl::Status Enter(int64_t request_bytes);
  void Leave(int64_t request_bytes);

  // Waits until no call is inside, or the time comes, or WakeWaiters was called and `give_up` says so. Whether it is
  // empty.
  bool WaitUntilEmpty(absl::Time until, const std::function<bool()>& give_up);
  void WakeWaiters();

  Snapshot snapshot() const;

 private:
  const int64_t max_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  Snapshot inside_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_CALL_GATE_H_
