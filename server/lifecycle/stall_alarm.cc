#include "server/lifecycle/stall_alarm.h"

#include <utility>

namespace tensord::server {

StallAlarm::StallAlarm(Alarms* alarms, absl::Duration limit, std::function<void()> ring, Clock clock)
    : alarms_(alarms), limit_(limit), ring_(std::move(ring)), clock_(std::move(clock)) {}

void StallAlarm::SetLocked() {
  due_ = progress_ + limit_;
  alarm_ = alarms_->Set(due_, [self = shared_from_this()] { self->Due(); });
}

void StallAlarm::Progress(absl::Duration later) {
  MutexLock lock(&mutex_);
  progress_ = clock_() + later;
  if (ended_) return;
  // A set alarm looks when it is due, which costs less than to set it anew each time.
  if (alarm_.has_value() && due_ <= progress_ + limit_) return;
  if (alarm_.has_value()) alarms_->Drop(*alarm_);
  SetLocked();
}

void StallAlarm::Pause() {
  MutexLock lock(&mutex_);
  progress_ = absl::InfiniteFuture();
}

void StallAlarm::Due() {
  {
    MutexLock lock(&mutex_);
    if (ended_) return;
    if (progress_ == absl::InfiniteFuture()) return alarm_.reset();
    if (clock_() < progress_ + limit_) return SetLocked();
    ringing_ = true;
    has_rung_ = true;
  }
  ring_();
  MutexLock lock(&mutex_);
  ringing_ = false;
  changed_.SignalAll();
}

bool StallAlarm::End() {
  MutexLock lock(&mutex_);
  ended_ = true;
  if (alarm_.has_value()) alarms_->Drop(*alarm_);
  while (ringing_) changed_.Wait(&mutex_);
  return has_rung_;
}

}  // namespace tensord::server
