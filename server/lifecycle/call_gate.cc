#include "server/lifecycle/call_gate.h"

#include <algorithm>
#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"

namespace tensord::server {

CallGate::CallGate(int64_t max_bytes, int64_t max_tenant_bytes)
    : bytes_({.limit = "in_flight_bytes",
              .tenant_limit = "scheduling.tenant_in_flight_percent",
              .bytes = "bytes of requests in progress",
              .tenant_bytes = "bytes of one tenant's requests in progress"},
             max_bytes, max_tenant_bytes) {}

bool CallGate::MoveTo(ServingState state) {
  std::vector<std::weak_ptr<DrainWatcher>> watchers;
  {
    MutexLock lock(&mutex_);
    if (state <= inside_.state) return false;
    inside_.state = state;
    if (state >= ServingState::kDraining) watchers.swap(watchers_);
  }
  for (const std::weak_ptr<DrainWatcher>& watcher : watchers) {
    if (const auto living = watcher.lock()) living->OnDrain();
  }
  return true;
}

void CallGate::Watch(std::weak_ptr<DrainWatcher> watcher) {
  {
    MutexLock lock(&mutex_);
    if (inside_.state < ServingState::kDraining) {
      if (watchers_.size() >= look_at_) {
        std::erase_if(watchers_, [](const std::weak_ptr<DrainWatcher>& one) { return one.expired(); });
        look_at_ = std::max(look_at_, 2 * watchers_.size());
      }
      watchers_.push_back(std::move(watcher));
      return;
    }
  }
  if (const auto living = watcher.lock()) living->OnDrain();
}

absl::Status CallGate::Enter(int64_t request_bytes, const std::string& tenant) {
  MutexLock lock(&mutex_);
  const ServingStateInfo& state = InfoOf(inside_.state);
  if (!state.takes_calls) return Refuse(Refusal::kServerDraining, state.refusal);
  RETURN_IF_ERROR(bytes_.Add(request_bytes, tenant));
  ++inside_.calls;
  return absl::OkStatus();
}

void CallGate::Leave(int64_t request_bytes, const std::string& tenant) {
  MutexLock lock(&mutex_);
  --inside_.calls;
  bytes_.Remove(request_bytes, tenant);
  if (inside_.calls == 0) changed_.SignalAll();
}

bool CallGate::Owe(int64_t bytes) {
  MutexLock lock(&mutex_);
  if (inside_.owed_bytes > 0 && bytes > bytes_.most() / 8 - inside_.owed_bytes) return false;
  inside_.owed_bytes += bytes;
  return true;
}

void CallGate::Repay(int64_t bytes) {
  MutexLock lock(&mutex_);
  inside_.owed_bytes -= bytes;
}

bool CallGate::WaitUntilEmpty(absl::Time until, const std::function<bool()>& give_up) {
  MutexLock lock(&mutex_);
  const auto time = ToSteadyClock(until);
  while (inside_.calls > 0 && !give_up()) {
    if (!changed_.WaitUntil(&mutex_, time)) break;
  }
  return inside_.calls == 0;
}

void CallGate::WakeWaiters() {
  MutexLock lock(&mutex_);  // else a waiter that has just looked, and is about to wait, would miss it
  changed_.SignalAll();
}

CallGate::Snapshot CallGate::snapshot() const {
  MutexLock lock(&mutex_);
  Snapshot inside = inside_;
  inside.bytes = bytes_.held();
  return inside;
}

}  // namespace tensord::server
