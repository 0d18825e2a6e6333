#include "engine/exec/binding/binding_cache.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/stop_signal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

using IntPtr = std::shared_ptr<const int64_t>;
using Cache = BindingCache<IntPtr>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

BindingKey Key(int64_t n) { return {.arguments = {{.dtype = DType::kF32, .shape = {n}}}, .run_time_sizes = {}}; }
IntPtr Int(int64_t n) { return std::make_shared<const int64_t>(n); }
int64_t BytesOf(const IntPtr& n) { return *n; }

struct CacheTest : ::testing::Test {
  BindingStats::Counts counts() const { return stats->counts(SizedKind::kProgram); }
  int64_t count(BindingStats::Event event) const { return counts().events[event]; }
  // Until so many wait for what another makes.
  void AwaitJoined(int64_t joined) const {
    while (count(BindingStats::kJoined) < joined) std::this_thread::yield();
  }

  const std::shared_ptr<BindingStats> stats = std::make_shared<BindingStats>();
};

// Makes what is kept under Key(1), on a thread of its own, until it is told to end.
class SlowMaker {
 public:
  // Returns when it has begun.
  explicit SlowMaker(Cache* cache)
      : thread_([this, cache] {
          const absl::StatusOr<IntPtr> made = cache->FindOrMake(Key(1), [this] {
            begun_.Set();
            go_.Wait();
            return Int(1);
          });
          EXPECT_TRUE(made.ok()) << made.status();
        }) {
    begun_.Wait();
  }
  void End() {
    go_.Set();
    thread_.join();
  }

 private:
  Event begun_, go_;
  std::thread thread_;
};

TEST_F(CacheTest, KeepsWhatWasUsedLast) {
  {
    Cache cache({.max_sets = 2, .stats = stats}, SizedKind::kProgram);
    const IntPtr one = *cache.FindOrMake(Key(1), [] { return Int(1); });
    const IntPtr two = *cache.FindOrMake(Key(2), [] { return Int(2); });
    EXPECT_EQ(cache.Find(Key(1)), one);
    const IntPtr three = *cache.FindOrMake(Key(3), [] { return Int(3); });
    EXPECT_EQ(cache.Find(Key(1)), one);
    EXPECT_EQ(cache.Find(Key(2)), nullptr);
    EXPECT_EQ(cache.Find(Key(3)), three);
    EXPECT_THAT(counts().events, ElementsAre(3, 3, 0, 0, 1)) << "found, made, joined, refused, evicted";
    EXPECT_EQ(counts().entries, 2);
    EXPECT_EQ(*two, 2) << "who has it keeps it";
  }
  EXPECT_EQ(counts().entries, 0);
}

TEST_F(CacheTest, KeepsSoManyBytes) {
  {
    Cache cache({.max_bytes = 10, .stats = stats}, SizedKind::kProgram, &BytesOf);
    for (const int64_t n : {4, 5, 3}) ASSERT_TRUE(cache.FindOrMake(Key(n), [n] { return Int(n); }).ok());
    EXPECT_EQ(cache.Find(Key(4)), nullptr);
    EXPECT_NE(cache.Find(Key(5)), nullptr);
    EXPECT_EQ(cache.bytes(), 8);
    EXPECT_EQ(counts().bytes, 8);
    ASSERT_TRUE(cache.FindOrMake(Key(11), [] { return Int(11); }).ok());
    EXPECT_NE(cache.Find(Key(11)), nullptr) << "the one used last stays, though it alone is too large";
    EXPECT_EQ(cache.bytes(), 11);
    EXPECT_EQ(count(BindingStats::kEvicted), 3);
  }
  EXPECT_EQ(counts().bytes, 0);
}

TEST_F(CacheTest, OfSeveralWhoAskAtOnceOneMakes) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  Event go;
  std::atomic<int> made{0};
  std::vector<IntPtr> got(8);
  std::vector<std::thread> threads;
  for (IntPtr& mine : got) {
    threads.emplace_back([&] {
      mine = *cache.FindOrMake(Key(1), [&] {
        ++made;
        go.Wait();
        return Int(1);
      });
    });
  }
  AwaitJoined(7);
  // A caller for other sizes waits for none of them.
  EXPECT_EQ(**cache.FindOrMake(Key(2), [] { return Int(2); }), 2);
  EXPECT_EQ(**cache.FindOrMake(Key(2), [] { return Int(3); }), 2);
  go.Set();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  for (const IntPtr& mine : got) EXPECT_EQ(mine, got[0]);
  EXPECT_THAT(counts().events, ElementsAre(1, 2, 7, 0, 0));
}

TEST_F(CacheTest, WhoWaitsMayGiveUp) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  SlowMaker maker(&cache);
  const auto never = [] { return Int(2); };
  int asked = 0;
  const auto check = [&asked] {
    return ++asked < 3 ? absl::OkStatus() : Refuse(Refusal::kCancelled, "the client is gone");
  };
  EXPECT_EQ(cache.FindOrMake(Key(1), never, check).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
  maker.End();
  EXPECT_EQ(**cache.FindOrMake(Key(1), never), 1) << "what was made is kept";
}

// As those do who make something for a run that has a signal.
TEST_F(CacheTest, WhoWaitsWithoutACheckAsksTheSignalOfHisThread) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  SlowMaker maker(&cache);
  std::atomic<bool> has_given_up{false};
  std::thread waiting([&] {
    const RunCheck gone = [] { return Refuse(Refusal::kCancelled, "the client is gone"); };
    StopSignal stop(gone);
    const StopSignal::Scope scope(&stop);
    const absl::StatusOr<IntPtr> got = cache.FindOrMake(Key(1), [] { return Int(2); });
    has_given_up = absl::IsCancelled(got.status());
  });
  const auto hangs = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!has_given_up && std::chrono::steady_clock::now() < hangs) std::this_thread::yield();
  EXPECT_TRUE(has_given_up);
  maker.End();
  waiting.join();
}

TEST_F(CacheTest, WhoMakesItMayGiveUpForHimselfAlone) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  Event begun;
  std::atomic<bool> is_gone{false};
  const RunCheck check = [&is_gone] {
    return is_gone ? Refuse(Refusal::kDeadlineExceeded, "the deadline passed") : absl::OkStatus();
  };
  std::thread maker([&] {
    const absl::StatusOr<IntPtr> made = cache.FindOrMake(
        Key(1),
        [&] {
          begun.Set();
          while (!StopRequested()) std::this_thread::yield();
          return Int(1);  // looks as if it had succeeded
        },
        check);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kDeadlineExceeded) << made.status();
    EXPECT_FALSE(StopRequested()) << "it is about what was made alone";
  });
  begun.Wait();
  std::atomic<int> made{0};
  std::vector<absl::StatusOr<IntPtr>> got(3);
  std::vector<std::thread> waiting;
  for (absl::StatusOr<IntPtr>& mine : got) {
    waiting.emplace_back([&] {
      mine = cache.FindOrMake(Key(1), [&made] {
        ++made;
        return Int(2);
      });
    });
  }
  AwaitJoined(3);
  // A caller that does not wait on a thread waits for no maker that may break off.
  std::vector<std::function<void()>> queue;
  const auto submit = [&queue](std::function<void()> work) {
    queue.push_back(std::move(work));
    return QueuedWork::Drop([] {});
  };
  IntPtr submitted;
  cache.FindOrSubmit(
      Key(1), "", submit, [] { return Int(3); }, [&](const absl::StatusOr<IntPtr>& n) { submitted = *n; });
  ASSERT_EQ(queue.size(), 1u);
  queue[0]();
  EXPECT_EQ(*submitted, 3);
  is_gone = true;
  maker.join();
  for (std::thread& thread : waiting) thread.join();
  for (const absl::StatusOr<IntPtr>& mine : got) {
    ASSERT_TRUE(mine.ok()) << mine.status();
    EXPECT_EQ(**mine, 3) << "what is here by then";
  }
  EXPECT_EQ(made, 0);
  EXPECT_EQ(counts().entries, 1);
}

TEST_F(CacheTest, WhatItsMakerBrokeOffIsMadeAnewByOneOfThoseWhoWaited) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  Event begun;
  std::atomic<int> made{0};
  std::vector<absl::StatusOr<IntPtr>> got(4);
  const RunCheck refuse_all = [] { return Refuse(Refusal::kCancelled, "the client is gone"); };
  std::thread maker([&] {
    got[0] = cache.FindOrMake(
        Key(1),
        [&] {
          begun.Set();
          AwaitJoined(3);
          while (!StopRequested()) std::this_thread::yield();
          return absl::StatusOr<IntPtr>(Refuse(Refusal::kShapeMismatch, "3 is not 4"));  // nor as if it had failed
        },
        refuse_all);
  });
  begun.Wait();
  std::vector<std::thread> waiting;
  for (size_t i = 1; i < got.size(); ++i) {
    waiting.emplace_back([&, i] {
      got[i] = cache.FindOrMake(Key(1), [&] {
        ++made;
        return Int(2);
      });
    });
  }
  maker.join();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(got[0].status().code(), absl::StatusCode::kCancelled) << got[0].status();
  for (size_t i = 1; i < got.size(); ++i) {
    ASSERT_TRUE(got[i].ok()) << got[i].status();
    EXPECT_EQ(**got[i], 2);
  }
  EXPECT_EQ(made, 1);
}

TEST_F(CacheTest, WhoGivesUpOnAThreadLeavesWhatIsMadeElsewhere) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  int dropped = 0;
  const auto submit = [&](const std::function<void()>&) { return QueuedWork::Drop([&dropped] { ++dropped; }); };
  const auto never = [](const absl::StatusOr<IntPtr>&) { ADD_FAILURE() << "nobody waits"; };
  const Cache::Leave leave = cache.FindOrSubmit(
      Key(1), "", submit, [] { return Int(1); }, never);
  bool has_left = false;
  const auto check = [&] {
    if (!std::exchange(has_left, true)) leave();
    return Refuse(Refusal::kCancelled, "the client is gone");
  };
  EXPECT_FALSE(cache
                   .FindOrMake(
                       Key(1), [] { return Int(2); }, check)
                   .ok());
  EXPECT_TRUE(has_left);
  EXPECT_EQ(dropped, 1) << "nobody waits for it any more";
}

TEST_F(CacheTest, ARefusalIsToldToAllAndNotKept) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  Event go;
  std::vector<absl::Status> statuses(3);
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] {
      status = cache
                   .FindOrMake(Key(1),
                               [&]() -> absl::StatusOr<IntPtr> {
                                 go.Wait();
                                 return Refuse(Refusal::kShapeMismatch, "3 is not 4");
                               })
                   .status();
    });
  }
  AwaitJoined(2);
  go.Set();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_EQ(status.message(), "3 is not 4");
  EXPECT_EQ(count(BindingStats::kRefused), 1);
  EXPECT_EQ(counts().entries, 0);
  EXPECT_TRUE(cache.FindOrMake(Key(1), [] { return Int(1); }).ok());
}

TEST_F(CacheTest, WhatThrowsIsRefused) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  const absl::Status status =
      cache.FindOrMake(Key(1), []() -> absl::StatusOr<IntPtr> { throw std::runtime_error("no memory"); }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no memory"));
  EXPECT_TRUE(cache.FindOrMake(Key(1), [] { return Int(1); }).ok()) << "nobody waits for it for ever";
}

TEST_F(CacheTest, WhatIsMadeElsewhereIsAwaitedByNobody) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  std::vector<std::function<void()>> queue;
  const auto submit = [&queue](std::function<void()> work) {
    queue.push_back(std::move(work));
    return QueuedWork::Drop([] {});
  };
  std::vector<IntPtr> got;
  const auto done = [&got](const absl::StatusOr<IntPtr>& n) { got.push_back(*n); };
  cache.FindOrSubmit(
      Key(1), "", submit, [] { return Int(1); }, done);
  cache.FindOrSubmit(
      Key(1), "", submit, [] { return Int(2); }, done);
  EXPECT_TRUE(got.empty());
  ASSERT_EQ(queue.size(), 1u);
  IntPtr waited;
  std::thread waiting([&] { waited = *cache.FindOrMake(Key(1), [] { return Int(3); }); });
  AwaitJoined(2);
  queue[0]();
  waiting.join();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(*got[0], 1);
  EXPECT_EQ(got[1], got[0]);
  EXPECT_EQ(waited, got[0]);
  cache.FindOrSubmit(
      Key(1), "", submit, [] { return Int(4); }, done);
  ASSERT_EQ(got.size(), 3u) << "told at once";
  EXPECT_EQ(got[2], got[0]);
  EXPECT_THAT(counts().events, ElementsAre(1, 1, 2, 0, 0));
}

TEST_F(CacheTest, AFullQueueIsToldAtOnce) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  const auto refuse = [](const std::function<void()>&) -> absl::StatusOr<QueuedWork::Drop> {
    return Refuse(Refusal::kQueueFull, "full");
  };
  std::vector<absl::Status> told;
  cache.FindOrSubmit(
      Key(1), "", refuse, [] { return Int(1); },
      [&told](const absl::StatusOr<IntPtr>& n) { told.push_back(n.status()); });
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].message(), "full");
  EXPECT_EQ(**cache.FindOrMake(Key(1), [] { return Int(2); }), 2) << "it is tried again";
}

TEST_F(CacheTest, WhatNobodyWaitsForIsDroppedAndBrokenOff) {
  Cache cache({.stats = stats}, SizedKind::kProgram);
  std::vector<std::function<void()>> queue;
  int dropped = 0;
  const auto submit = [&](std::function<void()> work) {
    queue.push_back(std::move(work));
    return QueuedWork::Drop([&dropped] { ++dropped; });
  };
  const auto never = [](const absl::StatusOr<IntPtr>&) { ADD_FAILURE() << "nobody waits"; };
  Cache::Leave first, second;
  bool interrupted = false;
  const auto make = [&] {
    if (second != nullptr) std::exchange(second, nullptr)();
    interrupted = StopRequested();
    return Int(1);
  };
  first = cache.FindOrSubmit(Key(2), "", submit, make, never);
  first();
  EXPECT_EQ(dropped, 1) << "it had not begun";
  first = cache.FindOrSubmit(Key(1), "", submit, make, never);
  second = cache.FindOrSubmit(Key(1), "", submit, make, never);
  first();
  first();
  EXPECT_EQ(dropped, 1) << "one still waits";
  queue[1]();  // who leaves while it is made
  EXPECT_TRUE(interrupted);
  EXPECT_EQ(cache.Find(Key(1)), nullptr) << "what was broken off is not kept";
  EXPECT_EQ(**cache.FindOrMake(Key(1), make), 1);
  EXPECT_FALSE(interrupted) << "nobody may break off what is made on the thread of who asks";
}

}  // namespace
}  // namespace tensord
