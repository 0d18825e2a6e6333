#include "server/lifecycle/stall_alarm.h"

#include <atomic>
#include <future>
#include <memory>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

// A clock that stands still but for what it is told; tells how often it was looked at.
class HandClock {
 public:
  StallAlarm::Clock Reader() {
    return [this] {
      looks_.fetch_add(1);
      return start_ + absl::Milliseconds(passed_ms_.load());
    };
  }
  void Pass(int64_t ms) { passed_ms_ += ms; }
  int looks() const { return looks_; }
  void WaitUntilLooks(int count) const {
    while (looks_ < count) std::this_thread::yield();
  }
  // Until the alarm has been due that often, and went on.
  void WaitForLooks(int count) const { WaitUntilLooks(looks_ + count); }

 private:
  const absl::Time start_ = absl::Now() - absl::Hours(1);
  std::atomic<int64_t> passed_ms_{0};
  std::atomic<int> looks_{0};
};

// An alarm of 10 ms by a clock of its own, which may ring once it is told so.
class HandAlarm {
 public:
  HandAlarm()
      : stall_(std::make_shared<StallAlarm>(
            &alarms_, absl::Milliseconds(10), [this] { Ring(); }, clock_.Reader())) {}
  Alarms& alarms() { return alarms_; }
  HandClock& clock() { return clock_; }
  StallAlarm& stall() { return *stall_; }

  // Rings when `ms` more have passed.
  void ExpectRingAfter(int64_t ms) {
    may_ring_ = true;
    clock_.Pass(ms);
    rung_.get_future().wait();
    EXPECT_TRUE(stall_->End());
  }

 private:
  void Ring() {
    EXPECT_TRUE(may_ring_);
    rung_.set_value();
  }

  Alarms alarms_;
  HandClock clock_;
  std::promise<void> rung_;
  std::atomic<bool> may_ring_{false};
  const std::shared_ptr<StallAlarm> stall_;
};

TEST(StallAlarmTest, RingsOnceWhereNothingGoesOn) {
  HandAlarm alarm;
  alarm.stall().Progress();
  alarm.ExpectRingAfter(10);
}

TEST(StallAlarmTest, WhatMayTakeLongerRingsLater) {
  HandAlarm alarm;
  alarm.stall().Progress(absl::Milliseconds(50));
  alarm.clock().Pass(59);
  alarm.clock().WaitForLooks(3);
  const int looks = alarm.clock().looks();
  alarm.stall().Progress(absl::Hours(1000));
  alarm.clock().WaitUntilLooks(looks + 2);  // that of Progress, and one when it was due: there is none after it
  alarm.stall().Progress();                 // of which nothing is left
  alarm.ExpectRingAfter(10);
}

TEST(StallAlarmTest, ProgressBeginsTheTimeAnew) {
  HandAlarm alarm;
  for (int i = 0; i < 5; ++i) {
    alarm.stall().Progress();
    alarm.clock().Pass(9);
    alarm.clock().WaitForLooks(3);
  }
  alarm.ExpectRingAfter(1);
}

TEST(StallAlarmTest, WhileItPausesItDoesNotRing) {
  HandAlarm alarm;
  alarm.stall().Progress();
  alarm.stall().Pause();
  alarm.clock().Pass(20);
  std::promise<void> passed;
  alarm.alarms().Set(SteadyNow() + absl::Milliseconds(20), [&] { passed.set_value(); });  // after the stall's own
  passed.get_future().wait();
  alarm.stall().Progress();
  alarm.ExpectRingAfter(10);
}

TEST(StallAlarmTest, WhatHasEndedDoesNotRing) {
  Alarms alarms;
  HandClock clock;
  const auto stall = std::make_shared<StallAlarm>(
      &alarms, absl::Milliseconds(10), [] { ADD_FAILURE() << "rang"; }, clock.Reader());
  EXPECT_FALSE(std::make_shared<StallAlarm>(&alarms, absl::Milliseconds(10), nullptr)->End()) << "it never began";
  stall->Progress();
  clock.WaitForLooks(3);
  EXPECT_FALSE(stall->End());
  clock.Pass(100);
  stall->Progress();
  std::promise<void> later;  // behind whatever was due
  alarms.Set(absl::Now(), [&] { later.set_value(); });
  later.get_future().wait();
}

TEST(StallAlarmTest, TheEndWaitsForWhatRings) {
  Alarms alarms;
  std::promise<void> ringing, go_on;
  std::atomic<bool> over{false};
  const auto stall = std::make_shared<StallAlarm>(&alarms, absl::ZeroDuration(), [&] {
    ringing.set_value();
    go_on.get_future().wait();
    over = true;
  });
  stall->Progress();
  ringing.get_future().wait();
  go_on.set_value();
  EXPECT_TRUE(stall->End());
  EXPECT_TRUE(over);
}

}  // namespace
}  // namespace tensord::server
