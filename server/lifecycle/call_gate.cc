#include "server/lifecycle/call_gate.h"

#include <algorithm>
#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"

namespace tensord::server {

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

void CallGate::SetMaxBytes(int64_t max_bytes, int64_t max_tenant_bytes) {
  MutexLock lock(&mutex_);
  max_bytes_ = max_bytes;
  max_tenant_bytes_ = max_tenant_bytes;
}

int64_t CallGate::max_tenant_bytes() const {
  MutexLock lock(&mutex_);
  return max_tenant_bytes_;
}

absl::Status CallGate::AddLocked(int64_t bytes, const std::string& tenant, int64_t own) {
  // A request that is alone may be as large as a message can be.
  if (inside_.bytes > own && bytes > max_bytes_ - inside_.bytes) {
    return RefuseLimit("in_flight_bytes", max_bytes_, inside_.bytes + bytes, "bytes of requests in progress");
  }
  if (bytes > 0) {
    int64_t& of_tenant = bytes_of_tenant_.try_emplace(tenant, 0).first->second;
    if (of_tenant > own && bytes > max_tenant_bytes_ - of_tenant) {
      return RefuseLimit("scheduling.tenant_in_flight_percent", max_tenant_bytes_, of_tenant + bytes,
                         "bytes of one tenant's requests in progress");
    }
    of_tenant += bytes;
  }
  inside_.bytes += bytes;
  return absl::OkStatus();
}

void CallGate::RemoveLocked(int64_t bytes, const std::string& tenant) {
  inside_.bytes -= bytes;
  const auto own = bytes_of_tenant_.find(tenant);
  if (own != bytes_of_tenant_.end() && (own->second -= bytes) == 0) bytes_of_tenant_.erase(own);
}

absl::Status CallGate::Enter(int64_t request_bytes, const std::string& tenant) {
  MutexLock lock(&mutex_);
  const ServingStateInfo& state = InfoOf(inside_.state);
  if (!state.takes_calls) return Refuse(Refusal::kServerDraining, state.refusal);
  RETURN_IF_ERROR(AddLocked(request_bytes, tenant));
  ++inside_.calls;
  return absl::OkStatus();
}

void CallGate::Leave(int64_t request_bytes, const std::string& tenant) {
  MutexLock lock(&mutex_);
  --inside_.calls;
  RemoveLocked(request_bytes, tenant);
  if (inside_.calls == 0) changed_.SignalAll();
}

absl::Status CallGate::Add(int64_t bytes, const std::string& tenant, int64_t own) {
  MutexLock lock(&mutex_);
  return AddLocked(bytes, tenant, own);
}

void CallGate::Remove(int64_t bytes, const std::string& tenant) {
  MutexLock lock(&mutex_);
  RemoveLocked(bytes, tenant);
}

bool CallGate::Owe(int64_t bytes) {
  MutexLock lock(&mutex_);
  if (inside_.owed_bytes > 0 && bytes > max_bytes_ / 8 - inside_.owed_bytes) return false;
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

Shares CallGate::TenantShares() const {
  MutexLock lock(&mutex_);
  return SharesOf(bytes_of_tenant_, max_tenant_bytes_);
}

CallGate::Snapshot CallGate::snapshot() const {
  MutexLock lock(&mutex_);
  return inside_;
}

}  // namespace tensord::server
