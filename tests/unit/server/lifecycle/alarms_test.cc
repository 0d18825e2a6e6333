#include "server/lifecycle/alarms.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

TEST(AlarmsTest, TheFirstRingsFirst) {
  std::vector<int> rung;
  std::promise<void> over;
  Alarms alarms;
  const absl::Time now = absl::Now();
  // Far away, so that none rings before it is told to; in their order then.
  const Alarms::Id last = alarms.Set(now + absl::Hours(2), [&] {
    rung.push_back(2);
    over.set_value();
  });
  const Alarms::Id first = alarms.Set(now + absl::Hours(1), [&] { rung.push_back(1); });
  alarms.RingNow(first);
  alarms.Set(now - absl::Hours(1), [&] { alarms.RingNow(last); });
  over.get_future().wait();
  EXPECT_EQ(rung, (std::vector<int>{1, 2}));
}

TEST(AlarmsTest, ItRingsWhenItsTimeComes) {
  std::promise<void> rung;
  Alarms alarms;
  const absl::Time time = absl::Now() + absl::Milliseconds(20);
  alarms.Set(time, [&] { rung.set_value(); });
  rung.get_future().wait();
  EXPECT_GE(absl::Now(), time);
}

TEST(AlarmsTest, WhatIsDroppedLetsGoOfWhatItHeld) {
  Alarms alarms;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  const Alarms::Id id = alarms.Set(absl::InfiniteFuture(), [held = std::move(held)] { FAIL() << "it was dropped"; });
  alarms.Drop(id);
  EXPECT_TRUE(seen.expired());
  alarms.RingNow(id);
  alarms.Drop(id);
}

TEST(AlarmsTest, TheEndDropsTheRest) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  {
    Alarms alarms;
    alarms.Set(absl::Now() + absl::Hours(1), [held = std::move(held)] { FAIL() << "its time has not come"; });
  }
  EXPECT_TRUE(seen.expired());
}

TEST(AlarmsTest, EachRingsOnce) {
  constexpr int kThreads = 4, kAlarms = 200;
  std::atomic<int> rung{0};
  std::promise<void> over;
  Alarms alarms;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kAlarms; ++i) {
        const Alarms::Id id = alarms.Set(absl::Now() + absl::Hours(i % 2), [&] {
          if (rung.fetch_add(1) + 1 == kThreads * kAlarms) over.set_value();
        });
        alarms.RingNow(id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over.get_future().wait();
  EXPECT_EQ(rung, kThreads * kAlarms);
}

}  // namespace
}  // namespace tensord::server
