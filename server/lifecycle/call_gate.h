#ifndef TENSORD_SERVER_LIFECYCLE_CALL_GATE_H_
#define TENSORD_SERVER_LIFECYCLE_CALL_GATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/lifecycle/serving_state.h"
#include "server/lifecycle/tenant_bytes.h"

namespace tensord::server {

// An observer of the begin of a drain.
class DrainWatcher {
 public:
  // Called once, on the thread that moves the gate, under no lock of it; must not block.
  virtual void OnDrain() = 0;

 protected:
  ~DrainWatcher() = default;
};

// The gate of calls: the state of the server, and how many calls with how many bytes are inside. Thread-safe.
class CallGate {
 public:
  struct Snapshot {
    ServingState state = ServingState::kStarting;
    int64_t calls = 0;
    int64_t bytes = 0;
    int64_t owed_bytes = 0;
  };

  explicit CallGate(int64_t max_bytes, int64_t max_tenant_bytes = TenantBytes::kUnlimited);

  // Returns the bytes of the calls inside: of their requests, and those that they add and remove themselves, whatever
  // the state is.
  TenantBytes& bytes() { return bytes_; }
  const TenantBytes& bytes() const { return bytes_; }

  // Moves on. Asking for an earlier state, or the same, changes nothing and returns false.
  bool MoveTo(ServingState state);

  // Counts a call in with its request's bytes. SERVER_DRAINING unless the server is ready; LIMIT_EXCEEDED if all
  // requests inside, or those of the tenant, would be too large together. After OK comes one Leave with the same size
  // and tenant.
  absl::Status Enter(int64_t request_bytes, const std::string& tenant = "");
  void Leave(int64_t request_bytes, const std::string& tenant = "");

  // Counts bytes that came for a call inside and wait until there is room for them. False if an eighth of the most
  // waits already: then they are not to be kept.
  bool Owe(int64_t bytes);
  void Repay(int64_t bytes);

  // Tells the watcher when the server drains; at once where it does already, never once it is gone.
  void Watch(std::weak_ptr<DrainWatcher> watcher);

  // Waits until no call is inside, or that time of SteadyNow, or WakeWaiters was called and `give_up` says so. True if
  // it is empty.
  bool WaitUntilEmpty(absl::Time until, const std::function<bool()>& give_up);
  void WakeWaiters();

  Snapshot snapshot() const;

 private:
  TenantBytes bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  Snapshot inside_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<DrainWatcher>> watchers_ ABSL_GUARDED_BY(mutex_);
  size_t look_at_ ABSL_GUARDED_BY(mutex_) = 64;  // so many watchers: some may be gone
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_CALL_GATE_H_
