#include "engine/base/queued_work.h"

#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord {

absl::Status QueuedWork::QueueFor(const std::string& tenant, const Submit& submit) {
  MutexLock lock(&mutex_);  // also while it is submitted: it may begin at once, and is to find its place
  const auto is_theirs = [&tenant](const Place& place) { return place.tenant == tenant; };
  if (work_ == nullptr || std::any_of(places_.begin(), places_.end(), is_theirs)) return absl::OkStatus();
  ASSIGN_OR_RETURN(Drop drop, submit([self = shared_from_this(), tenant] { self->Do(tenant); }));
  places_.push_back({.tenant = tenant, .drop = std::move(drop)});
  return absl::OkStatus();
}

void QueuedWork::Do(const std::string& tenant) {
  std::function<void()> work;
  std::vector<Place> places;
  {
    MutexLock lock(&mutex_);
    work.swap(work_);
    places.swap(places_);
  }
  if (work == nullptr) return;
  for (const Place& place : places) {
    if (place.tenant != tenant) place.drop();
  }
  StopSignal stop(&abandoned_);
  const StopSignal::Scope scope(&stop);
  work();
}

void QueuedWork::Abandon() {
  abandoned_.store(true, std::memory_order_relaxed);
  std::function<void()> work;
  std::vector<Place> places;
  {
    MutexLock lock(&mutex_);
    work.swap(work_);
    places.swap(places_);
  }
  for (const Place& place : places) place.drop();
}

}  // namespace tensord
