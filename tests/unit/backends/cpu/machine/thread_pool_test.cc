#include "backends/cpu/machine/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/base/control_group.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

// Ends only when so many tasks of one job run at once.
void ExpectThreadsAtWork(ThreadPool* pool, int count) {
  std::atomic<int> left{count};
  pool->ParallelFor(count, [&](int64_t) {
    left.fetch_sub(1);
    while (left.load() > 0) std::this_thread::yield();
  });
  EXPECT_EQ(left.load(), 0);
}

TEST(ThreadPoolTest, CountsTheCaller) {
  EXPECT_EQ(ThreadPool(1).threads(), 1);
  EXPECT_EQ(ThreadPool(4).threads(), 4);
  EXPECT_EQ(ThreadPool(0).threads(), 1);
  EXPECT_EQ(ThreadPool(-3).threads(), 1);
}

// ControlGroupTest tests the bounds of control groups.
TEST(ThreadPoolTest, ByDefaultThereIsOneForEachUsableProcessor) {
  EXPECT_EQ(MakeThreadPool(0)->threads(), UsableProcessors());
  EXPECT_EQ(MakeThreadPool(3)->threads(), 3);
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(MakeThreadPool(0)->threads(), 1) << "more than one is there, but not for this thread";
  }).join();
}

TEST(ThreadPoolTest, RunsEachTaskOnce) {
  for (int threads : {1, 2, 4, 7}) {
    ThreadPool pool(threads);
    for (int64_t tasks : {0, 1, 2, 3, 64, 1000}) {
      for (TaskCost cost : {TaskCost::kUnknown, TaskCost::kShort}) {
        std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
        pool.ParallelFor(
            tasks, [&](int64_t i) { runs[static_cast<size_t>(i)].fetch_add(1); }, cost);
        for (const std::atomic<int>& r : runs) EXPECT_EQ(r.load(), 1) << threads << " threads, " << tasks << " tasks";
      }
    }
  }
}

TEST(ThreadPoolTest, NegativeTaskCountRunsNothing) {
  ThreadPool pool(2);
  pool.ParallelFor(-1, [](int64_t) { FAIL(); });
  pool.ParallelForBlocks(-5, 4, [](int64_t, int64_t) { FAIL(); });
  pool.ParallelForBlocks(0, 4, [](int64_t, int64_t) { FAIL(); });
}

TEST(ThreadPoolTest, BlocksCoverTheRangeAndDoNotDependOnThreads) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int64_t size : {1, 9, 10, 11, 105}) {
      std::vector<int64_t> end_of(static_cast<size_t>(size), -1);
      pool.ParallelForBlocks(size, 10, [&](int64_t begin, int64_t end) { end_of[static_cast<size_t>(begin)] = end; });
      for (int64_t i = 0; i < size; ++i) {
        EXPECT_EQ(end_of[static_cast<size_t>(i)], i % 10 == 0 ? std::min(size, i + 10) : -1);
      }
    }
  }
}

TEST(ThreadPoolTest, PlainWritesOfTasksAreVisibleAfterTheCall) {
  ThreadPool pool(4);
  std::vector<int64_t> values(4096);
  for (int64_t round = 0; round < 500; ++round) {
    pool.ParallelForBlocks(4096, 512, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += i;
    });
  }
  for (int64_t i = 0; i < 4096; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], 500 * i);
}

TEST(ThreadPoolTest, NestedCallsRunSeriallyOnTheirOwnThread) {
  ThreadPool pool(4);
  std::atomic<int64_t> inner_runs{0};
  std::atomic<int> strangers{0};
  pool.ParallelFor(16, [&](int64_t) {
    const std::thread::id self = std::this_thread::get_id();
    pool.ParallelFor(16, [&](int64_t) {
      if (std::this_thread::get_id() != self) strangers.fetch_add(1);
      inner_runs.fetch_add(1);
    });
  });
  EXPECT_EQ(inner_runs.load(), 256);
  EXPECT_EQ(strangers.load(), 0);
  ExpectThreadsAtWork(&pool, 4);  // the mark of being inside a job is gone
}

TEST(ThreadPoolTest, ABusyPoolDoesNotBlockASecondCaller) {
  ThreadPool pool(2);
  std::atomic<bool> first_inside{false};
  std::atomic<bool> second_done{false};
  std::thread first([&] {
    pool.ParallelFor(2, [&](int64_t) {
      first_inside.store(true);
      while (!second_done.load()) std::this_thread::yield();
    });
  });
  while (!first_inside.load()) std::this_thread::yield();
  int64_t sum = 0;  // plain: every task of the second caller runs on this thread
  pool.ParallelFor(100, [&](int64_t i) { sum += i; });
  second_done.store(true);
  first.join();
  EXPECT_EQ(sum, 4950);
}

// Waits in each of two tasks for the other to begin, which takes two threads.
void MeetInAJob(ThreadPool* pool, TaskCost cost) {
  std::atomic<int> left{2};
  pool->ParallelFor(
      2,
      [&](int64_t) {
        left.fetch_sub(1);
        while (left.load() > 0) std::this_thread::yield();
      },
      cost);
}

TEST(ThreadPoolTest, TwoCallersHaveWorkersAtTheSameTime) {
  ThreadPool pool(4);
  std::thread other([&] {
    for (int round = 0; round < 50; ++round) MeetInAJob(&pool, TaskCost::kUnknown);
  });
  for (int round = 0; round < 50; ++round) MeetInAJob(&pool, TaskCost::kUnknown);
  other.join();
}

// One of two threads computes between its jobs while the other has jobs: no third comes for these.
TEST(ThreadPoolTest, ASeriesCountsAsAtWorkBetweenItsJobs) {
  ThreadPool pool(2);
  std::atomic<bool> has_begun{false}, may_end{false};
  std::thread computes([&] {
    const ThreadPool::Series series(&pool);
    pool.ParallelFor(2, [](int64_t) {});
    has_begun.store(true);
    while (!may_end.load()) std::this_thread::yield();
  });
  while (!has_begun.load()) std::this_thread::yield();
  int64_t sum = 0;  // plain: every task runs on this thread
  for (int round = 0; round < 100; ++round) {
    pool.ParallelFor(100, [&](int64_t i) { sum += i; });
  }
  EXPECT_EQ(sum, 100 * 4950);
  may_end.store(true);
  computes.join();
  ExpectThreadsAtWork(&pool, 2);
}

TEST(ThreadPoolTest, ASeriesSpreadsItsJobs) {
  ThreadPool pool(4), other(2);
  const ThreadPool::Series series(&pool);
  ExpectThreadsAtWork(&other, 2);
  for (int job = 0; job < 3; ++job) ExpectThreadsAtWork(&pool, 4);
}

TEST(ThreadPoolTest, ASeriesWithoutJobsTakesNobodysPlace) {
  ThreadPool pool(2);
  const ThreadPool::Series series(&pool);
  std::thread([&] { ExpectThreadsAtWork(&pool, 2); }).join();
}

TEST(ThreadPoolTest, MoreCallersThanJobsRunTheirTasksThemselves) {
  ThreadPool pool(2);
  std::atomic<size_t> inside{0};
  std::atomic<bool> release{false};
  std::vector<std::thread> callers;
  for (size_t c = 0; c < ThreadPool::kMaxJobs; ++c) {
    callers.emplace_back([&] {
      bool counted = false;  // a caller's tasks; the worker has its own
      const std::thread::id self = std::this_thread::get_id();
      pool.ParallelFor(2, [&](int64_t) {
        if (std::this_thread::get_id() == self && !counted) {
          counted = true;
          inside.fetch_add(1);
        }
        while (!release.load()) std::this_thread::yield();
      });
    });
  }
  // A caller may come so late that the worker has one of its tasks, and still holds the other itself.
  while (inside.load() < ThreadPool::kMaxJobs) std::this_thread::yield();
  int64_t sum = 0;
  pool.ParallelFor(100, [&](int64_t i) { pool.ParallelFor(2, [&](int64_t) { sum += i; }); });
  EXPECT_EQ(sum, 2 * 4950);
  release.store(true);
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadPoolTest, ManyShortTasksWakeParkedWorkers) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    const auto parked = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < parked) std::this_thread::yield();
    // The caller comes to task 60 and waits there for somebody that it woke on the way.
    const std::thread::id self = std::this_thread::get_id();
    std::atomic<bool> has_come{false};
    pool.ParallelFor(
        64,
        [&](int64_t task) {
          const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(5);
          while (std::chrono::steady_clock::now() < end) continue;
          if (std::this_thread::get_id() != self) has_come.store(true);
          while (task == 60 && !has_come.load()) std::this_thread::yield();
        },
        TaskCost::kShort);
    EXPECT_TRUE(has_come.load());
  }
}

TEST(ThreadPoolTest, ShortTasksAreTakenFromBothEnds) {
  ThreadPool pool(3);
  const std::thread::id caller = std::this_thread::get_id();
  constexpr int64_t kTasks = 100'000;
  std::atomic<bool> worker_came{false};
  std::vector<int64_t> of_caller;
  std::atomic<int64_t> first_of_worker{-1};
  std::atomic<int64_t> count{0};
  pool.ParallelFor(
      kTasks,
      [&](int64_t task) {
        count.fetch_add(1);
        if (std::this_thread::get_id() == caller) {
          of_caller.push_back(task);
          // Long enough for the others to be worth waking, until they have come.
          const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
          while (!worker_came.load() && std::chrono::steady_clock::now() < end) {
          }
        } else if (!worker_came.exchange(true)) {
          first_of_worker.store(task);
        }
      },
      TaskCost::kShort);
  EXPECT_EQ(count.load(), kTasks);
  ASSERT_TRUE(worker_came.load());
  EXPECT_GE(first_of_worker.load(), kTasks - 3);
  for (size_t i = 0; i < of_caller.size(); ++i) ASSERT_EQ(of_caller[i], static_cast<int64_t>(i));
}

// Libraries throw where memory runs out.
TEST(ThreadPoolTest, WhatATaskThrowsReachesTheCallerAndThePoolGoesOn) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (const TaskCost cost : {TaskCost::kUnknown, TaskCost::kShort}) {
      for (int64_t bad = 0; bad < 20; ++bad) {
        const auto run = [&] {
          pool.ParallelFor(
              20,
              [&](int64_t i) {
                if (i >= bad) throw std::bad_alloc();
              },
              cost);
        };
        EXPECT_THROW(run(), std::bad_alloc);
        const ThreadPool::Series series(&pool);
        EXPECT_THROW(run(), std::bad_alloc);
      }
    }
    ExpectThreadsAtWork(&pool, threads);
    EXPECT_TRUE(pool.ParallelFor(100, [](int64_t) {})) << "what was thrown before is forgotten";
    // More callers than there are jobs: some run their tasks themselves.
    std::vector<std::thread> callers;
    std::atomic<int> thrown{0};
    for (size_t caller = 0; caller < ThreadPool::kMaxJobs + 4; ++caller) {
      callers.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          try {
            pool.ParallelFor(16, [&](int64_t task) {
              if (task == i % 16) throw std::bad_alloc();
            });
          } catch (const std::bad_alloc&) {
            thrown.fetch_add(1);
          }
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(thrown.load(), static_cast<int>(callers.size()) * 50);
    ExpectThreadsAtWork(&pool, threads);
  }
}

TEST(ThreadPoolTest, ManyCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(6);
  for (size_t c = 0; c < sums.size(); ++c) {
    callers.emplace_back([&pool, &sum = sums[c]] {
      for (int round = 0; round < 300; ++round) {
        std::vector<int64_t> parts(17);
        pool.ParallelFor(17, [&](int64_t i) { parts[static_cast<size_t>(i)] = i + round; });
        sum += std::accumulate(parts.begin(), parts.end(), int64_t{0});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int64_t sum : sums) EXPECT_EQ(sum, 300 * 136 + 17 * (299 * 300 / 2));
}

TEST(ThreadPoolTest, ParkedWorkersWakeForANewJob) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> left{3};
    pool.ParallelFor(3, [&](int64_t) {
      left.fetch_sub(1);
      while (left.load() > 0) std::this_thread::yield();
    });
    // Longer than the workers spin, so that both the spinning and the parked path are taken in turn.
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(round % 2 == 0 ? 400 : 0);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(left.load(), 0);
  }
}

TEST(ThreadPoolTest, WorkersLeaveTheProcessorOfTheirCaller) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two processors";
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(processor, &all)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processor, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
      std::array<int, 2> processors = {-1, -1};
      std::atomic<int> left{2};
      pool.ParallelFor(2, [&](int64_t task) {
        processors[static_cast<size_t>(task)] = sched_getcpu();
        left.fetch_sub(1);
        while (left.load() > 0) std::this_thread::yield();
      });
      EXPECT_NE(processors[0], processors[1]) << "caller on " << processor;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(ThreadPoolTest, PoolsComeAndGo) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(1 + i % 4);
    std::atomic<int64_t> runs{0};
    if (i % 3 != 0) pool.ParallelFor(8, [&](int64_t) { runs.fetch_add(1); });
    EXPECT_EQ(runs.load(), i % 3 != 0 ? 8 : 0);
  }
}

}  // namespace
}  // namespace tensord::cpu
