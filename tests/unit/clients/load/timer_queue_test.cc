#include "clients/load/timer_queue.h"

#include <chrono>
#include <future>
#include <thread>

#include "gtest/gtest.h"

namespace tensord::load {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(TimerQueue, GivesWhatIsDueInOrder) {
  TimerQueue queue;
  const auto now = TimerQueue::Clock::now();
  queue.Add({.at = now - milliseconds(1), .number = 2});
  queue.Add({.at = now + hours(1), .number = 3});
  queue.Add({.at = now - milliseconds(2), .number = 1});
  const auto due = queue.WaitUntil(now + hours(2));
  ASSERT_EQ(due.size(), 2u);
  EXPECT_EQ(due[0].number, 1u);
  EXPECT_EQ(due[1].number, 2u);
  EXPECT_TRUE(queue.WaitUntil(now).empty());
}

TEST(TimerQueue, IsWokenByWakeAndByAnEarlierEntry) {
  TimerQueue queue;
  const auto far = TimerQueue::Clock::now() + hours(1);
  queue.Wake();
  EXPECT_TRUE(queue.WaitUntil(far).empty());
  queue.Add({.at = far, .number = 1});
  auto waiting = std::async(std::launch::async, [&] { return queue.WaitUntil(far); });
  queue.Add({.at = TimerQueue::Clock::now() + milliseconds(1), .number = 2});
  const auto due = waiting.get();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].number, 2u);
}

}  // namespace
}  // namespace tensord::load
