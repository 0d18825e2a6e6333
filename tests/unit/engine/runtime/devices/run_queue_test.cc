#include "engine/runtime/devices/run_queue.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
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
  explicit RunQueueTest(absl::Duration ageing = absl::Seconds(1)) : queue_({.ageing = ageing}) {}

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
  RunQueue queue_;
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

// The calls of a tenant that is served do not rise over those of others, however old they are.
TEST_F(RunQueueTest, ABacklogDoesNotOutrankWhoComes) {
  for (int i = 0; i < 300; ++i) Push({.tenant = "many"});
  for (int i = 0; i < 250; ++i) {
    now_ += absl::Milliseconds(10);
    Run(absl::Milliseconds(10));
  }
  const uint64_t newcomer = Push({.tenant = "one"});
  EXPECT_EQ(Run(), newcomer);
  // If nothing of it starts any more, all of it rises.
  Push({.tenant = "high", .priority = 1});
  now_ += absl::Milliseconds(1000);
  queue_.Next(now_);
  EXPECT_EQ(queue_.size_of(2), 0);
  EXPECT_EQ(queue_.size_of(3), 50);
}

TEST_F(RunQueueTest, WhatWaitsRisesSoonerWhereAgeingIsLess) {
  Push({.priority = -2});
  Push({.priority = -2});
  Push({.priority = 2});
  queue_.SetAgeing(absl::Milliseconds(10), now_);
  now_ += absl::Milliseconds(10);
  queue_.Next(now_);
  EXPECT_EQ(queue_.size_of(1), 2);
  EXPECT_THAT(RunAll(), ElementsAre(3, 1, 2));
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

TEST_F(RunQueueTest, KnowsTheBytesOfTheirArguments) {
  const auto push = [&](int64_t floats) {
    QueuedRun run;
    run.request.arguments = {{.type = {.dtype = DType::kF32, .shape = {floats}}, .bytes = nullptr},
                             {.type = {.dtype = DType::kF32, .shape = {1}}, .bytes = nullptr}};
    run.since = now_;
    queue_.Push(++last_, std::move(run));
  };
  push(10);
  push(20);
  push(40);
  EXPECT_EQ(queue_.argument_bytes(), 4 * (70 + 3));
  QueuedRun first = Take();
  EXPECT_EQ(queue_.argument_bytes(), 4 * (60 + 2));
  queue_.PutBack(std::move(first));
  EXPECT_EQ(queue_.argument_bytes(), 4 * (70 + 3));
  EXPECT_TRUE(queue_.Remove(2).has_value());
  EXPECT_EQ(queue_.argument_bytes(), 4 * (50 + 2));
  queue_.TakeAll();
  EXPECT_EQ(queue_.argument_bytes(), 0);
}

// The certain part of the wait when a tenant asks now.
class LeastWaitTest : public RunQueueTest {
 protected:
  LeastWaitTest() : RunQueueTest(absl::Seconds(10)) {}

  absl::Duration Wait(const Wish& wish, std::vector<absl::Duration> rests = {absl::ZeroDuration()}) {
    return queue_.LeastWait({.tenant = wish.tenant, .priority = wish.priority, .deadline = now_ + wish.within}, now_,
                            std::move(rests));
  }

  const absl::Duration one_ = absl::Seconds(1);
};

TEST_F(LeastWaitTest, CountsWhatIsDueEarlierAndAsMuchOfOtherTenants) {
  EXPECT_EQ(Wait({}), absl::ZeroDuration());
  Push({.within = 10 * one_, .expected = one_});
  Push({.within = 20 * one_, .expected = one_});
  for (int i = 0; i < 5; ++i) Push({.tenant = "b", .within = 5 * one_, .expected = one_});
  EXPECT_EQ(queue_.work(), 7 * one_);
  EXPECT_EQ(Wait({.within = 30 * one_}), 4 * one_) << "its own two, and as much of the other tenant's";
  EXPECT_EQ(Wait({.within = 15 * one_}), 2 * one_);
  EXPECT_EQ(Wait({.within = 5 * one_}), absl::ZeroDuration());
  EXPECT_EQ(Wait({.tenant = "c"}), absl::ZeroDuration()) << "it has its turn first";
  EXPECT_EQ(Wait({.priority = 1}), absl::ZeroDuration());
  EXPECT_EQ(Wait({.priority = -1, .within = 5 * one_}), 7 * one_);
}

TEST_F(LeastWaitTest, OthersGetAsMuchAsTheirPartIsBehind) {
  Push({.tenant = "b", .expected = 5 * one_});
  for (int i = 0; i < 9; ++i) Push({.tenant = "b", .expected = one_});
  Push({.expected = one_});
  Run(5 * one_);
  EXPECT_EQ(Wait({}), one_) << "the other one had its part before";
  Run(8 * one_);
  Push({.expected = one_});
  EXPECT_EQ(Wait({}), 5 * one_) << "its own, and what it has had more";
}

TEST_F(LeastWaitTest, HigherClassesCountUntilTheRunHasRisen) {
  for (int32_t priority : {1, 2}) {
    for (int i = 0; i < 50; ++i) Push({.tenant = "b", .priority = priority, .expected = one_});
  }
  EXPECT_EQ(Wait({.priority = 1}), 10 * one_);
  EXPECT_EQ(Wait({}), 20 * one_) << "in two steps, and the time of each counts once";
  EXPECT_EQ(Wait({.priority = 2}), absl::ZeroDuration());
  Push({.expected = 100 * one_});
  EXPECT_EQ(Wait({}), 100 * one_) << "its own may rise before it, and then goes first";
}

TEST_F(LeastWaitTest, OneLongRunKeepsOneWorkerBusyAndNotTheOthers) {
  Push({.expected = one_});
  Push({.expected = one_});
  EXPECT_EQ(Wait({}, {100 * one_, one_}), 3 * one_);
  EXPECT_EQ(Wait({}, {2 * one_, one_}), 2 * one_) << "the second one may still run";
  EXPECT_EQ(Wait({}, {100 * one_, 100 * one_}), 100.5 * one_);
  Push({.expected = 100 * one_});
  EXPECT_EQ(Wait({}, {one_, one_}), 2 * one_) << "the long one takes one worker, the short ones the other";
  EXPECT_EQ(Wait({}, {one_}), 103 * one_);
}

// Tenants, classes, deadlines, times and workers at random, where what is expected comes true.
TEST_F(LeastWaitTest, NoRunStartsBeforeItsLeastWait) {
  std::mt19937 random(17);
  const auto below = [&random](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  int64_t told = 0, runs = 0;
  for (int round = 0; round < 400; ++round) {
    RunQueue queue({.ageing = absl::Milliseconds(1 + below(300))});
    const int workers = 1 + below(4), tenants = 1 + below(4), most_waiting = 1 + below(30);
    const int levels = 1 + below(kNumPriorityClasses), unknown_percent = below(2) * below(60);
    std::vector<std::optional<QueuedRun>> running(static_cast<size_t>(workers));
    std::vector<absl::Time> ends(running.size());
    std::map<uint64_t, absl::Time> earliest;
    std::map<uint64_t, absl::Duration> used;
    absl::Time now = absl::FromUnixSeconds(1000);
    for (uint64_t id = 1; id <= 150;) {
      for (size_t i = 0; i < running.size(); ++i) {
        if (!running[i].has_value() || ends[i] > now) continue;
        queue.End(*running[i], used.at(running[i]->id));
        running[i].reset();
      }
      while (queue.size() < most_waiting && below(3) != 0) {
        QueuedRun run;
        run.request.tenant = std::string(1, static_cast<char>('a' + below(tenants)));
        run.request.priority = kMostPriority - below(levels);
        run.request.deadline = below(3) == 0 ? absl::InfiniteFuture() : now + absl::Milliseconds(below(5000));
        run.since = now;
        used[id] = absl::Milliseconds(1 + (below(8) == 0 ? below(500) : below(20)));
        if (below(100) >= unknown_percent) run.expected = used[id];
        std::vector<absl::Duration> rests(running.size());
        for (size_t i = 0; i < running.size(); ++i) {
          if (running[i].has_value() && running[i]->is_known()) rests[i] = ends[i] - now;
        }
        const absl::Duration least = queue.LeastWait(
            {.tenant = run.request.tenant, .priority = run.request.priority, .deadline = run.request.deadline}, now,
            std::move(rests));
        earliest[id] = now + least;
        told += least > absl::ZeroDuration();
        ++runs;
        queue.Push(id++, std::move(run));
      }
      absl::Time next = now + absl::Milliseconds(1 + below(50));
      for (size_t i = 0; i < running.size(); ++i) {
        if (!running[i].has_value() && queue.size() > 0) {
          running[i] = queue.Take(queue.Next(now), absl::Milliseconds(5));
          ASSERT_GE(now, earliest.at(running[i]->id)) << "round " << round << ", run " << running[i]->id;
          ends[i] = now + used.at(running[i]->id);
        }
        if (running[i].has_value()) next = std::min(next, ends[i]);
      }
      now = next;
    }
  }
  EXPECT_GT(told, runs / 3) << "and mostly one is known";
}

TEST_F(RunQueueTest, ATenantPaysForItsAnswersToo) {
  for (int i = 0; i < 2; ++i) {
    Push({.tenant = "a"});
    Push({.tenant = "b"});
  }
  const QueuedRun first = Take();
  queue_.End(first, absl::Milliseconds(1));
  queue_.Charge(first, absl::Milliseconds(5));
  EXPECT_EQ(Run(), 2u);
  EXPECT_EQ(Run(), 4u) << "the other has used less still";
  const QueuedRun last = Take();
  queue_.End(last, absl::Milliseconds(1));
  queue_.Charge(last, absl::Milliseconds(5));  // nobody is left who would care
  EXPECT_EQ(last.id, 3u);
}

}  // namespace
}  // namespace tensord
