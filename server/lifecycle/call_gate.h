#ifndef TENSORD_SERVER_LIFECYCLE_CALL_GATE_H_
#define TENSORD_SERVER_LIFECYCLE_CALL_GATE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/shares.h"
#include "server/lifecycle/serving_state.h"

namespace tensord::server {

// Who wants to know when the server begins to drain.
class DrainWatcher {
 public:
  // Called once, on the thread that moves the gate, under no lock of it; must not block.
  virtual void OnDrain() = 0;

 protected:
  ~DrainWatcher() = default;
};

// Where calls come in and go out: the state of the server, and how many calls with how many bytes are inside.
// Thread-safe.
class CallGate {
 public:
  struct Snapshot {
    ServingState state = ServingState::kStarting;
    int64_t calls = 0;
    int64_t bytes = 0;
    int64_t owed_bytes = 0;
  };

  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  explicit CallGate(int64_t max_bytes, int64_t max_tenant_bytes = kUnlimited)
      : max_bytes_(max_bytes), max_tenant_bytes_(max_tenant_bytes) {}

  // For the calls that come from now on.
  void SetMaxBytes(int64_t max_bytes, int64_t max_tenant_bytes);
  int64_t max_tenant_bytes() const;

  // Moves on. Asking for an earlier state, or the same, changes nothing and returns false.
  bool MoveTo(ServingState state);

  // Counts a call in, whose request has that many bytes. SERVER_DRAINING unless the server is ready; LIMIT_EXCEEDED
  // where the requests inside, or those of the tenant, would be too large together. After OK comes one Leave with the
  // same size and tenant.
  absl::Status Enter(int64_t request_bytes, const std::string& tenant = "");
  void Leave(int64_t request_bytes, const std::string& tenant = "");

  // Counts bytes in that a call inside needs beside its request, until they are taken out again, whatever the state is.
  // LIMIT_EXCEEDED as for Enter.
  // `own`: of the bytes inside so many are the call's already, which do not keep it from having more.
  absl::Status Add(int64_t bytes, const std::string& tenant, int64_t own = 0);
  void Remove(int64_t bytes, const std::string& tenant);

  // Counts bytes that came for a call inside and wait until Add has room for them. False where an eighth of the most
  // waits already: then they are not to be kept.
  bool Owe(int64_t bytes);
  void Repay(int64_t bytes);

  // Tells the watcher when the server drains; at once where it does already, never once it is gone.
  void Watch(std::weak_ptr<DrainWatcher> watcher);

  // Waits until no call is inside, or that time of SteadyNow, or WakeWaiters was called and `give_up` says so. Whether
  // it is empty.
  bool WaitUntilEmpty(absl::Time until, const std::function<bool()>& give_up);
  void WakeWaiters();

  Snapshot snapshot() const;
  // Of the bytes that requests of one tenant may have.
  Shares TenantShares() const;

 private:
  absl::Status AddLocked(int64_t bytes, const std::string& tenant, int64_t own = 0)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveLocked(int64_t bytes, const std::string& tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  int64_t max_bytes_ ABSL_GUARDED_BY(mutex_);
  int64_t max_tenant_bytes_ ABSL_GUARDED_BY(mutex_);
  CondVar changed_;
  Snapshot inside_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int64_t> bytes_of_tenant_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<DrainWatcher>> watchers_ ABSL_GUARDED_BY(mutex_);
  size_t look_at_ ABSL_GUARDED_BY(mutex_) = 64;  // so many watchers: some may be gone
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_CALL_GATE_H_
