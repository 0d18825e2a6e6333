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
  // Until the alarm has been due that often, and went on.
  void WaitForLooks(int count) {
    const int until = looks_ + count;
    while (looks_ < until) std::this_thread::yield();
  }

 private:
  const absl::Time start_ = absl::Now() - absl::Hours(1);
  std::atomic<int64_t> passed_ms_{0};
  std::atomic<int> looks_{0};
};

TEST(StallAlarmTest, RingsOnceWhereNothingGoesOn) {
  Alarms alarms;
  HandClock clock;
  std::promise<void> rung;
  const auto stall = std::make_shared<StallAlarm>(
      &alarms, absl::Milliseconds(10), [&] { rung.set_value(); }, clock.Reader());
  stall->Progress();
  clock.Pass(10);
  rung.get_future().wait();
  EXPECT_TRUE(stall->End());
}

TEST(StallAlarmTest, WhatMayTakeLongerRingsLater) {
  Alarms alarms;
  HandClock clock;
  std::promise<void> rung;
  std::atomic<bool> may_ring{false};
  const auto ring = [&] {
    EXPECT_TRUE(may_ring);
    rung.set_value();
  };
  const auto stall = std::make_shared<StallAlarm>(&alarms, absl::Milliseconds(10), ring, clock.Reader());
  stall->Progress(absl::Milliseconds(50));
  clock.Pass(59);
  clock.WaitForLooks(3);
  stall->Progress(absl::Hours(1000));
  clock.WaitForLooks(1);
  stall->Progress();  // of which nothing is left
  may_ring = true;
  clock.Pass(10);
  rung.get_future().wait();
  EXPECT_TRUE(stall->End());
}

TEST(StallAlarmTest, ProgressBeginsTheTimeAnew) {
  Alarms alarms;
  HandClock clock;
  std::promise<void> rung;
  std::atomic<bool> may_ring{false};
  const auto ring = [&] {
    EXPECT_TRUE(may_ring);
    rung.set_value();
  };
  const auto stall = std::make_shared<StallAlarm>(&alarms, absl::Milliseconds(10), ring, clock.Reader());
  for (int i = 0; i < 5; ++i) {
    stall->Progress();
    clock.Pass(9);
    clock.WaitForLooks(3);
  }
  may_ring = true;
  clock.Pass(1);
  rung.get_future().wait();
  EXPECT_TRUE(stall->End());
}

TEST(StallAlarmTest, WhileItPausesItDoesNotRing) {
  Alarms alarms;
  HandClock clock;
  std::promise<void> rung;
  std::atomic<bool> may_ring{false};
  const auto ring = [&] {
    EXPECT_TRUE(may_ring);
    rung.set_value();
  };
  const auto stall = std::make_shared<StallAlarm>(&alarms, absl::Milliseconds(10), ring, clock.Reader());
  stall->Progress();
  stall->Pause();
  clock.Pass(20);
  std::promise<void> passed;
  alarms.Set(SteadyNow() + absl::Milliseconds(20), [&] { passed.set_value(); });  // after the stall's own
  passed.get_future().wait();
  stall->Progress();
  may_ring = true;
  clock.Pass(10);
  rung.get_future().wait();
  EXPECT_TRUE(stall->End());
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
