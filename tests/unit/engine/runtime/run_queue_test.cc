#include "engine/runtime/run_queue.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;

// The queue and a clock that stands still unless a test moves it.
class RunQueueTest : public ::testing::Test {
 protected:
  struct Wish {
    std::string tenant = "a";
    int32_t priority = 0;
    absl::Duration within = absl::InfiniteDuration();
    absl::Duration expected = absl::ZeroDuration();
  };

  uint64_t Push(const Wish& wish) {
    QueuedRun run;
    run.request.tenant = wish.tenant;
    run.request.priority = wish.priority;
    run.request.deadline = now_ + wish.within;
    run.since = now_;
    run.expected = wish.expected;
    queue_.Push(++last_, std::move(run));
    return last_;
  }

  QueuedRun Take() { return queue_.Take(queue_.Next(now_), absl::Milliseconds(1)); }
  // Takes the next one, which uses that much time.
  uint64_t Run(absl::Duration used = absl::Milliseconds(1)) {
    const QueuedRun run = Take();
    queue_.End(run, used);
    return run.id;
  }
  std::vector<uint64_t> RunAll() {
    std::vector<uint64_t> order;
    while (queue_.size() > 0) order.push_back(Run());
    return order;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  uint64_t last_ = 0;
  RunQueue queue_{{.ageing = absl::Seconds(1)}};
};

TEST_F(RunQueueTest, EqualsGoInTheOrderOfArrival) {
  for (int i = 0; i < 4; ++i) Push({});
  EXPECT_THAT(RunAll(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(queue_.Next(now_), nullptr);
}

TEST_F(RunQueueTest, HigherClassesGoFirst) {
  for (int32_t priority : {-2000000000, -1, 0, 1, 2, 2000000000}) Push({.priority = priority});
  EXPECT_EQ(queue_.size_of(0), 1);
  EXPECT_EQ(queue_.size_of(4), 2) << "beyond the classes is the highest";
  EXPECT_THAT(RunAll(), ElementsAre(5, 6, 4, 3, 2, 1));
}

TEST_F(RunQueueTest, WhatWaitsRises) {
  Push({.priority = -2, .within = absl::Seconds(50)});
  now_ += absl::Milliseconds(999);
  Push({.priority = -1});
  EXPECT_EQ(queue_.Next(now_)->id, 2u);
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(queue_.Next(now_)->id, 1u) << "in one class now, where it is due first";
  now_ += absl::Seconds(3);
  Push({.priority = 2});
  EXPECT_EQ(queue_.Next(now_)->id, 1u) << "in the highest class";
  EXPECT_EQ(queue_.size_of(4), 3);
  EXPECT_EQ(queue_.size_of(3), 0);
  EXPECT_EQ(queue_.size_of(2), 0);
}

// However many of the highest class keep coming.
TEST_F(RunQueueTest, NoneWaitsForEver) {
  const uint64_t low = Push({.tenant = "low", .priority = -2});
  const uint64_t patient = Push({.tenant = "b", .priority = 2, .within = absl::Hours(10)});
  std::map<uint64_t, absl::Duration> waited;
  for (int i = 0; i < 200; ++i) {
    Push({.tenant = "b", .priority = 2, .within = absl::Seconds(10)});
    Push({.tenant = "b", .priority = 2, .within = absl::Seconds(10)});
    waited[Run(absl::Seconds(1))] = absl::Seconds(i);
    now_ += absl::Seconds(1);
  }
  ASSERT_EQ(waited.count(low), 1u);
  EXPECT_LE(waited[low], absl::Seconds(6));
  ASSERT_EQ(waited.count(patient), 1u) << "nor one that has time";
}

TEST_F(RunQueueTest, TheEarliestDeadlineOfATenantGoesFirst) {
  Push({.within = absl::Seconds(30)});
  Push({.within = absl::Seconds(10)});
  Push({});
  Push({.within = absl::Seconds(20)});
  Push({.within = absl::Seconds(10)});
  EXPECT_THAT(RunAll(), ElementsAre(2, 5, 4, 1, 3));
}

TEST_F(RunQueueTest, TenantsShareTheTimeAndNotTheTurns) {
  for (int i = 0; i < 100; ++i) {
    Push({.tenant = "long"});
    Push({.tenant = "short"});
  }
  absl::Duration of_long, of_short;
  int short_runs = 0;
  for (int i = 0; i < 44; ++i) {
    const QueuedRun run = Take();
    const bool is_long = run.request.tenant == "long";
    const absl::Duration used = is_long ? absl::Milliseconds(10) : absl::Milliseconds(1);
    (is_long ? of_long : of_short) += used;
    short_runs += !is_long;
    queue_.End(run, used);
  }
  EXPECT_NEAR(absl::FDivDuration(of_long, of_short), 1.0, 0.3);
  EXPECT_GE(short_runs, 35);
}

TEST_F(RunQueueTest, ATenantWithOneRunNeedNotWaitForAnothersHundred) {
  for (int i = 0; i < 100; ++i) Push({.tenant = "greedy"});
  Run();
  const uint64_t modest = Push({.tenant = "modest"});
  EXPECT_EQ(Run(), modest);
}

TEST_F(RunQueueTest, WhoWasIdleSavedNothingUp) {
  for (int i = 0; i < 200; ++i) Push({.tenant = "busy"});
  for (int i = 0; i < 100; ++i) Run();  // while the other one could have had half of it
  for (int i = 0; i < 50; ++i) Push({.tenant = "idle"});
  int of_idle = 0;
  for (int i = 0; i < 40; ++i) {
    const QueuedRun run = Take();
    of_idle += run.request.tenant == "idle";
    queue_.End(run, absl::Milliseconds(1));
  }
  EXPECT_NEAR(of_idle, 20, 1);
}

TEST_F(RunQueueTest, WhoHadMuchWaitsForTheOthers) {
  Push({.tenant = "heavy"});
  for (int i = 0; i < 30; ++i) Push({.tenant = "light"});
  EXPECT_EQ(Run(absl::Milliseconds(10)), 1u);
  const uint64_t again = Push({.tenant = "heavy"});
  for (int i = 0; i < 10; ++i) EXPECT_NE(Run(), again) << i;
  std::vector<uint64_t> next = {Run(), Run()};
  EXPECT_THAT(next, ::testing::Contains(again));
}

TEST_F(RunQueueTest, WhatIsExpectedCountsWhileItRuns) {
  Push({.tenant = "a", .expected = absl::Seconds(1)});
  Push({.tenant = "a", .expected = absl::Seconds(1)});
  Push({.tenant = "b", .expected = absl::Milliseconds(1)});
  Push({.tenant = "b", .expected = absl::Milliseconds(1)});
  const QueuedRun running = Take();
  EXPECT_EQ(running.id, 1u);
  EXPECT_EQ(Run(), 3u);
  EXPECT_EQ(Run(), 4u) << "the other tenant is charged for what still runs";
  queue_.End(running, absl::Seconds(1));
  EXPECT_EQ(Run(), 2u);
}

TEST_F(RunQueueTest, WhatIsCancelledOrExpiredIsTakenOut) {
  Push({.within = absl::Seconds(3)});
  Push({.within = absl::Seconds(1)});
  Push({});
  Push({.within = absl::Seconds(2)});
  EXPECT_EQ(queue_.first_deadline(), now_ + absl::Seconds(1));
  EXPECT_TRUE(queue_.TakeExpired(now_).empty());
  ASSERT_TRUE(queue_.Remove(1).has_value());
  EXPECT_FALSE(queue_.Remove(1).has_value());
  now_ += absl::Seconds(2);
  std::vector<uint64_t> expired;
  for (const QueuedRun& run : queue_.TakeExpired(now_)) expired.push_back(run.id);
  EXPECT_THAT(expired, ElementsAre(2, 4));
  EXPECT_EQ(queue_.first_deadline(), absl::InfiniteFuture());
  EXPECT_EQ(queue_.size(), 1);
  EXPECT_THAT(RunAll(), ElementsAre(3));
}

TEST_F(RunQueueTest, ARunThatIsPutBackStandsWhereItStood) {
  Push({.tenant = "a"});
  Push({.tenant = "b"});
  Push({.tenant = "a"});
  QueuedRun first = Take();
  EXPECT_EQ(queue_.size(), 2);
  queue_.PutBack(std::move(first));
  EXPECT_EQ(queue_.size_of("a"), 2);
  EXPECT_THAT(RunAll(), ::testing::UnorderedElementsAre(1, 2, 3));
  EXPECT_EQ(queue_.size_of("a"), 0);
}

TEST_F(RunQueueTest, KnowsWhoWaitsAndSinceWhen) {
  EXPECT_EQ(queue_.oldest_since(), absl::InfiniteFuture());
  const absl::Time first = now_;
  Push({.tenant = "a", .priority = -1});
  now_ += absl::Milliseconds(5);
  Push({.tenant = "b"});
  EXPECT_EQ(queue_.oldest_since(), first);
  EXPECT_EQ(queue_.size_of("a"), 1);
  EXPECT_EQ(queue_.size_of("c"), 0);
  Run();
  EXPECT_EQ(queue_.oldest_since(), first);
  EXPECT_EQ(queue_.TakeAll().size(), 1u);
  EXPECT_EQ(queue_.size(), 0);
}

TEST_F(RunQueueTest, TheWorkBeforeAClaimIsALowerBound) {
  const absl::Duration one = absl::Seconds(1);
  const std::string a = "a", c = "c";
  const auto before = [&](const std::string& tenant, int32_t priority, absl::Duration within) {
    return queue_.WorkBefore({.tenant = tenant, .priority = priority, .deadline = now_ + within}, now_, 1);
  };
  EXPECT_EQ(before(a, 0, absl::Hours(1)), absl::ZeroDuration());
  Push({.tenant = "a", .within = absl::Seconds(10), .expected = one});
  Push({.tenant = "a", .within = absl::Seconds(20), .expected = one});
  for (int i = 0; i < 5; ++i) Push({.tenant = "b", .within = absl::Seconds(5), .expected = one});
  EXPECT_EQ(queue_.work(), 7 * one);
  EXPECT_EQ(before(a, 0, absl::Seconds(30)), 4 * one) << "its own two, and as much of the other tenant's";
  EXPECT_EQ(before(a, 0, absl::Seconds(15)), 2 * one);
  EXPECT_EQ(before(a, 0, absl::Seconds(5)), absl::ZeroDuration());
  EXPECT_EQ(before(c, 0, absl::Hours(1)), absl::ZeroDuration()) << "it has its turn first";
  EXPECT_EQ(before(a, 1, absl::Hours(1)), absl::ZeroDuration());
  EXPECT_EQ(before(a, -1, absl::Seconds(5)), one) << "after which it has risen";
}

}  // namespace
}  // namespace tensord
