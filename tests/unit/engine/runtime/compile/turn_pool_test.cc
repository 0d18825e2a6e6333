#include "engine/runtime/compile/turn_pool.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using Answer = TurnPool::Place::Answer;

// Work that goes on until it is let go, and says when it has begun.
class HeldWork {
 public:
  HeldWork(TurnPool* pool, const std::string& tenant) {
    EXPECT_TRUE(pool->Submit(tenant,
                             [begun = begun_, gate = gate_] {
                               begun->Set();
                               gate->Wait();
                             })
                    .taken());
  }
  ~HeldWork() { LetGo(); }
  void AwaitBegin() { begun_->Wait(); }
  void LetGo() { gate_->Set(); }

 private:
  const std::shared_ptr<Event> begun_ = std::make_shared<Event>(), gate_ = std::make_shared<Event>();
};

TEST(TurnPoolTest, OfOneTenantTheOldestGoesFirst) {
  Inbox<int> done;
  TurnPool pool({.threads = 1});
  HeldWork first(&pool, "a");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool.Submit("a", [&, i] { done.Put(i); }).taken());
  EXPECT_EQ(done.size(), 0u);
  first.LetGo();
  EXPECT_THAT(done.WaitFor(3), ElementsAre(0, 1, 2));
}

// With one thread, and none to spare: whoever has used less goes first, however much of another's waits.
TEST(TurnPoolTest, WhoUsedLessGoesFirst) {
  Inbox<std::string> done;
  TurnPool pool({.threads = 1, .spare_threads = 0});
  HeldWork first(&pool, "busy");
  first.AwaitBegin();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool.Submit("busy", [&] { done.Put("busy"); }).taken());
  EXPECT_TRUE(pool.Submit("other", [&] { done.Put("other"); }).taken());
  first.LetGo();
  EXPECT_THAT(done.WaitFor(4), ElementsAre("other", "busy", "busy", "busy"));
}

TEST(TurnPoolTest, AChainGoesBehindWhatWaits) {
  Inbox<std::string> done;
  TurnPool pool({.threads = 1, .spare_threads = 0});
  std::function<void()> step;
  std::atomic<int> left{1000};
  step = [&] {
    if (--left == 990) {
      EXPECT_TRUE(pool.Submit("other", [&] { done.Put("other"); }).taken());
    }
    left == 0 ? done.Put("chain") : void(pool.Submit("chain", step));
  };
  pool.Submit("chain", step);
  EXPECT_THAT(done.WaitFor(2), ElementsAre("other", "chain"));
}

TEST(TurnPoolTest, NobodyWaitsForAllOfAnothersThreads) {
  Inbox<int> done;
  TurnPool pool({.threads = 2, .spare_threads = 1});
  HeldWork first(&pool, "busy"), second(&pool, "busy");
  first.AwaitBegin();
  second.AwaitBegin();
  HeldWork third(&pool, "busy");
  EXPECT_TRUE(pool.Submit("other", [&] { done.Put(1); }).taken());
  done.WaitFor(1);
  EXPECT_TRUE(pool.Submit("third", [&] { done.Put(2); }).taken());
  done.WaitFor(2);
  while (pool.stats().running > 2) std::this_thread::yield();  // until they are counted as over
  EXPECT_EQ(pool.stats().queued, 1) << "the thread to spare is not for who has all others";
}

TEST(TurnPoolTest, WithoutThreadsToSpareAnothersFirstTurnComesNext) {
  Inbox<int> done;
  TurnPool pool({.threads = 1, .spare_threads = 0});
  HeldWork first(&pool, "busy");
  first.AwaitBegin();
  HeldWork second(&pool, "busy");
  EXPECT_TRUE(pool.Submit("other", [&] { done.Put(1); }).taken());
  first.LetGo();
  done.WaitFor(1);
}

TEST(TurnPoolTest, IsBoundedInAllAndByTenant) {
  TurnPool pool({.threads = 1, .spare_threads = 0, .bounds = {.max_queued = 3, .max_queued_per_tenant = 2}});
  HeldWork first(&pool, "a");
  first.AwaitBegin();
  EXPECT_EQ(pool.Submit("a", [] {}).answer, Answer::kTaken);
  EXPECT_EQ(pool.Submit("a", [] {}).answer, Answer::kTaken);
  EXPECT_EQ(pool.Submit("a", [] { FAIL(); }).answer, Answer::kTenantFull);
  EXPECT_EQ(pool.Submit("b", [] {}).answer, Answer::kTaken);
  EXPECT_EQ(pool.Submit("c", [] { FAIL(); }).answer, Answer::kQueueFull);
  pool.SetBounds({.max_queued = 4});
  EXPECT_EQ(pool.Submit("a", [] {}).answer, Answer::kTaken);
}

TEST(TurnPoolTest, SaysHowLongTheOldestWaits) {
  using std::chrono::nanoseconds;
  TurnPool pool({.threads = 1, .spare_threads = 0});
  HeldWork first(&pool, "a");
  first.AwaitBegin();
  EXPECT_EQ(pool.stats().oldest_wait, nanoseconds(0)) << "nothing waits";
  const auto begin = std::chrono::steady_clock::now();
  const TurnPool::Place oldest = pool.Submit("a", [] {});
  while (pool.stats().oldest_wait < std::chrono::milliseconds(5)) std::this_thread::yield();
  const auto between = std::chrono::steady_clock::now();
  EXPECT_TRUE(pool.Submit("b", [] {}).taken());
  EXPECT_GE(pool.stats().oldest_wait, std::chrono::milliseconds(5));
  // Named, for a macro's two sides are evaluated in any order.
  const auto of_the_first = pool.stats().oldest_wait;
  EXPECT_LE(of_the_first, std::chrono::steady_clock::now() - begin);
  EXPECT_TRUE(pool.Drop("a", oldest.id));
  const auto of_the_second = pool.stats().oldest_wait;
  EXPECT_LE(of_the_second, std::chrono::steady_clock::now() - between) << "that of the other tenant";
}

TEST(TurnPoolTest, WhatIsDroppedIsNotDoneAndGone) {
  const auto held = std::make_shared<int>();
  Inbox<int> done;
  TurnPool pool({.threads = 1, .spare_threads = 0});
  HeldWork first(&pool, "a");
  first.AwaitBegin();
  const TurnPool::Place dropped = pool.Submit("a", [held, &done] { done.Put(1); });
  const TurnPool::Place kept = pool.Submit("a", [held, &done] { done.Put(2); });
  EXPECT_EQ(held.use_count(), 3);
  EXPECT_TRUE(pool.Drop("a", dropped.id));
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_FALSE(pool.Drop("a", dropped.id));
  EXPECT_FALSE(pool.Drop("b", kept.id));
  first.LetGo();
  EXPECT_THAT(done.WaitFor(1), ElementsAre(2));
  EXPECT_FALSE(pool.Drop("a", kept.id));
}

TEST(TurnPoolTest, FinishesWhatIsQueuedAndWhatThatSubmits) {
  std::atomic<int> done{0};
  {
    TurnPool pool({.threads = 2});
    for (const char* tenant : {"a", "b", "c"}) {
      for (int i = 0; i < 10; ++i) {
        pool.Submit(tenant, [&pool, &done, tenant] { pool.Submit(tenant, [&done] { ++done; }); });
      }
    }
  }
  EXPECT_EQ(done, 30);
}

TEST(TurnPoolTest, CountsItsTurnsAndTheirTime) {
  TurnPool pool({.threads = 1});
  Event over;
  {
    HeldWork first(&pool, "a");
    first.AwaitBegin();
    EXPECT_EQ(pool.stats().running, 1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < until) {
    }
  }
  pool.Submit("a", [&] { over.Set(); });
  over.Wait();
  EXPECT_GE(pool.stats().done, 1);
  EXPECT_GE(pool.stats().busy, std::chrono::milliseconds(2));
}

}  // namespace
}  // namespace tensord
