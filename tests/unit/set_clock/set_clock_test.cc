// What waits and what has a deadline while somebody sets the system's clock: a test binary of its own, whose clock that
// is.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "engine/base/steady_time.h"
#include "gtest/gtest.h"
#include "server/admission/rate_limiter.h"
#include "server/lifecycle/alarms.h"
#include "server/lifecycle/call_gate.h"
#include "server/lifecycle/stall_alarm.h"

namespace {

std::atomic<int64_t> set_by_seconds{0};

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += set_by_seconds.load();
  return result;
}

namespace tensord::server {
namespace {

class SetClockTest : public testing::TestWithParam<int64_t> {
 protected:
  SetClockTest() { SteadyNow(); }
  ~SetClockTest() override { set_by_seconds = 0; }
  // Gives up after a minute.
  static bool WaitFor(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return condition();
  }
  // Abseil may look at the system's clock every two seconds only.
  static void SetClock() {
    const absl::Time before = absl::Now();
    set_by_seconds += GetParam();
    EXPECT_TRUE(WaitFor([before] { return absl::AbsDuration(absl::Now() - before) > absl::Minutes(59); }));
  }
};

TEST_P(SetClockTest, TimesOfDayThatComeFromOutsideAreAsFarAwayAsTheyAre) {
  const absl::Time wall = absl::Now(), steady = SteadyNow();
  SetClock();
  EXPECT_GE(absl::AbsDuration(absl::Now() - wall), absl::Minutes(59));
  EXPECT_GE(SteadyNow(), steady);
  EXPECT_LE(SteadyNow(), steady + absl::Minutes(1));
  const absl::Duration away = SteadyTimeOf(absl::Now() + absl::Minutes(5)) - SteadyNow();
  EXPECT_GE(away, absl::Minutes(4));
  EXPECT_LE(away, absl::Minutes(5) + absl::Seconds(1));
  EXPECT_EQ(SteadyTimeOf(absl::InfiniteFuture()), absl::InfiniteFuture());
  EXPECT_EQ(ToSteadyClock(absl::InfiniteFuture()), std::chrono::steady_clock::time_point::max());
}

TEST_P(SetClockTest, AlarmsRingWhenTheyAreDue) {
  Alarms alarms;
  std::atomic<bool> rang{false}, late_rang{false};
  alarms.Set(SteadyNow() + absl::Minutes(30), [&late_rang] { late_rang = true; });
  SetClock();
  alarms.Set(SteadyNow() + absl::Milliseconds(20), [&rang] { rang = true; });
  EXPECT_TRUE(WaitFor([&rang] { return rang.load(); }));
  EXPECT_FALSE(late_rang);
}

TEST_P(SetClockTest, WhatGoesOnIsNoStall) {
  Alarms alarms;
  std::atomic<int> rings{0};
  const auto stall = std::make_shared<StallAlarm>(&alarms, absl::Minutes(30), [&rings] { ++rings; });
  stall->Progress();
  SetClock();
  const auto soon = std::make_shared<StallAlarm>(&alarms, absl::Milliseconds(20), [&rings] { ++rings; });
  soon->Progress();
  EXPECT_TRUE(WaitFor([&rings] { return rings > 0; }));
  EXPECT_TRUE(soon->End());
  EXPECT_FALSE(stall->End());
}

TEST_P(SetClockTest, ADrainEndsInItsTime) {
  CallGate gate(1 << 20);
  gate.MoveTo(ServingState::kWarming);
  gate.MoveTo(ServingState::kServing);
  ASSERT_TRUE(gate.Enter(1, "a").ok());
  std::atomic<bool> asked{false};
  const absl::Time until = absl::Now() + absl::Seconds(3);
  EXPECT_FALSE(gate.WaitUntilEmpty(until, [&asked] {
    if (!asked.exchange(true)) SetClock();
    return false;
  })) << "and it returns";
  gate.Leave(1, "a");
}

TEST_P(SetClockTest, ATenantsRateIsThatOfTheClockOnTheWall) {
  RateLimiter rates({.per_second = 1, .burst = 1000});
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(rates.Admit("a", SteadyNow()).ok());
  const absl::Time before = SteadyNow();
  SetClock();
  int admitted = 0;
  while (rates.Admit("a", SteadyNow()).ok()) ++admitted;
  EXPECT_LE(admitted, absl::ToInt64Seconds(SteadyNow() - before) + 1) << "an hour that nobody waited fills nothing";
}

INSTANTIATE_TEST_SUITE_P(ByAnHour, SetClockTest, testing::Values(-3600, 3600));

}  // namespace
}  // namespace tensord::server
