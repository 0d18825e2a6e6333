#include "server/lifecycle/alarms.h"

#include <algorithm>

#include "engine/base/steady_time.h"

namespace tensord::server {
namespace {

// How long the thread sleeps at most: waits have a farthest end.
constexpr absl::Duration kMostSleep = absl::Hours(1);

}  // namespace

Alarms::Alarms() : thread_([this] { Loop(); }) {}

Alarms::~Alarms() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.SignalAll();
  thread_.join();
}

void Alarms::AddLocked(At at, std::function<void()> ring) {
  times_[at.second] = at.first;
  const auto added = alarms_.emplace(at, std::move(ring)).first;
  if (added == alarms_.begin()) changed_.Signal();
}

std::function<void()> Alarms::TakeLocked(Id id) {
  const auto time = times_.find(id);
  if (time == times_.end()) return nullptr;
  const auto alarm = alarms_.find({time->second, id});
  std::function<void()> ring = std::move(alarm->second);
  alarms_.erase(alarm);
  times_.erase(time);
  return ring;
}

Alarms::Id Alarms::Set(absl::Time time, std::function<void()> ring) {
  MutexLock lock(&mutex_);
  const Id id = ++last_;
  AddLocked({time, id}, std::move(ring));
  return id;
}

void Alarms::RingNow(Id id) {
  MutexLock lock(&mutex_);
  std::function<void()> ring = TakeLocked(id);
  if (ring != nullptr) AddLocked({absl::InfinitePast(), id}, std::move(ring));
}

void Alarms::Drop(Id id) {
  std::function<void()> dropped;  // what it holds goes under no lock
  MutexLock lock(&mutex_);
  dropped = TakeLocked(id);
}

void Alarms::Loop() {
  while (true) {
    std::function<void()> ring;
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && (alarms_.empty() || alarms_.begin()->first.first > SteadyNow())) {
        const absl::Time first = alarms_.empty() ? absl::InfiniteFuture() : alarms_.begin()->first.first;
        changed_.WaitUntil(&mutex_, ToSteadyClock(std::min(first, SteadyNow() + kMostSleep)));
      }
      if (stopping_) return;
      ring = TakeLocked(alarms_.begin()->first.second);
    }
    ring();
  }
}

}  // namespace tensord::server
