#include "server/rpc/calls/polling_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/unit/server/rpc/calls/reactions.h"

namespace tensord::server {
namespace {

using Load = PollingThreads::Load;

TEST(PollingThreadsTest, WantsAnotherWhereOneHardlySleeps) {
  EXPECT_EQ(PollingThreads::Wanted(1, Load{.busy = 0.9, .sleeps_per_call = 0.05}), 2);
  EXPECT_EQ(PollingThreads::Wanted(3, Load{.busy = 0.6, .sleeps_per_call = 0.1}), 4);
  // One client that calls after each answer.
  EXPECT_EQ(PollingThreads::Wanted(1, Load{.busy = 0.7, .sleeps_per_call = 1}), 1);
  // A thread whose turn comes late, because others compute.
  EXPECT_EQ(PollingThreads::Wanted(1, Load{.busy = 0.1, .sleeps_per_call = 0.1}), 1);
}

TEST(PollingThreadsTest, WantsOneLessWhereTheySleepForEachCall) {
  EXPECT_EQ(PollingThreads::Wanted(2, Load{.busy = 0.6, .sleeps_per_call = 3}), 1);
  EXPECT_EQ(PollingThreads::Wanted(2, Load{.busy = 0.1, .sleeps_per_call = 0.1}), 1);
  EXPECT_EQ(PollingThreads::Wanted(2, Load{.busy = 0.4, .sleeps_per_call = 0.5}), 2);
  EXPECT_EQ(PollingThreads::Wanted(1, Load{.busy = 0, .sleeps_per_call = 9}), 1);
}

TEST(PollingThreadsTest, RestsWhereItHadWaitedForTheCall) {
  constexpr int64_t kMicrosecond = 1000;
  EXPECT_EQ(PollingThreads::Rest(100 * kMicrosecond), 0) << "the calls come together anyhow";
  EXPECT_GT(PollingThreads::Rest(2000 * kMicrosecond), 1000 * kMicrosecond);
  EXPECT_LT(PollingThreads::Rest(2000 * kMicrosecond), 2500 * kMicrosecond) << "half of what a refusal may take";
}

TEST(PollingThreadsTest, RestsBeforeTheFirstRefusalOfAThread) {
  std::thread([] {
    const auto begin = std::chrono::steady_clock::now();
    PollingThreads::RestBeforeRefusal();
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1));
  }).join();
}

TEST(PollingThreadsTest, OneIsAwake) {
  const PollingThreads threads;
  EXPECT_GE(threads.num_threads(), 2);
  EXPECT_EQ(threads.num_awake(), 1);
  Reactions reactions;
  std::thread::id first, second;
  ASSERT_TRUE(reactions.Run([&] { first = std::this_thread::get_id(); }));
  ASSERT_TRUE(reactions.Run([&] { second = std::this_thread::get_id(); }));
  EXPECT_EQ(first, second);
}

TEST(PollingThreadsTest, OthersReactBesideALongReaction) {
  PollingThreads threads;
  Reactions reactions;
  absl::Notification other;
  const auto is_over = reactions.Begin([&] {
    const PollingThreads::LongReaction others(&threads);
    EXPECT_EQ(threads.num_awake(), 2);
    const PollingThreads::LongReaction inner(&threads);
    EXPECT_EQ(threads.num_awake(), 2);
    EXPECT_TRUE(other.WaitForNotificationWithTimeout(kPatience));
  });
  EXPECT_TRUE(reactions.Run([&] { other.Notify(); }));
  EXPECT_TRUE(is_over->WaitForNotificationWithTimeout(kPatience));
}

TEST(PollingThreadsTest, ShortReactionsWakeNobody) {
  PollingThreads threads;
  Reactions reactions;
  EXPECT_TRUE(reactions.Run([&] {
    const PollingThreads::LongReaction small(&threads, PollingThreads::kLongBytes - 1);
    EXPECT_EQ(threads.num_awake(), 1);
    const PollingThreads::LongReaction none(nullptr);
    EXPECT_EQ(threads.num_awake(), 1);
  }));
}

TEST(PollingThreadsTest, SleepAgainWhenCallsAreFew) {
  PollingThreads threads;
  Reactions reactions;
  ASSERT_TRUE(reactions.Run([&] { const PollingThreads::LongReaction others(&threads); }));
  EXPECT_EQ(threads.num_awake(), 2);
  const absl::Time end = absl::Now() + kPatience;
  while (threads.num_awake() > 1 && absl::Now() < end) {
    ASSERT_TRUE(reactions.Run([&] { threads.React(); }));
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(threads.num_awake(), 1);
}

TEST(PollingThreadsTest, AllAreAwakeAfterwards) {
  { const PollingThreads threads; }
  Reactions reactions;
  absl::Notification other;
  const auto is_over = reactions.Begin([&] { EXPECT_TRUE(other.WaitForNotificationWithTimeout(kPatience)); });
  EXPECT_TRUE(reactions.Run([&] { other.Notify(); }));
  EXPECT_TRUE(is_over->WaitForNotificationWithTimeout(kPatience));
}

}  // namespace
}  // namespace tensord::server
