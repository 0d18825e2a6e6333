#include "tests/bench/in_process/host_workloads.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "tests/bench/median.h"

namespace tensord {
namespace {

using cpu::TaskCost;
using cpu::ThreadPool;
using Clock = std::chrono::steady_clock;

constexpr int kHostRounds = 31;

double Microseconds(absl::FunctionRef<void()> body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void BeBusy(std::chrono::microseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) continue;
}

double ForkJoin() {
  constexpr int kJobs = 2000;
  ThreadPool pool(2);
  std::vector<double> times;
  for (int round = 0; round < kHostRounds; ++round) {
    times.push_back(Microseconds([&] {
                      for (int i = 0; i < kJobs; ++i) pool.ParallelFor(2, [](int64_t) {});
                    }) /
                    kJobs);
  }
  return Median(std::move(times));
}

// Measures two tasks when the worker has parked.
double ForkJoinAfterRest(std::chrono::microseconds task, TaskCost cost) {
  ThreadPool pool(2);
  std::vector<double> times;
  for (int round = 0; round < 3 * kHostRounds; ++round) {
    BeBusy(std::chrono::microseconds(300));
    times.push_back(Microseconds([&] {
      pool.ParallelFor(
          2, [&](int64_t) { BeBusy(task); }, cost);
    }));
  }
  return Median(std::move(times));
}

// A job, of two callers that have one after the other on a pool of two threads.
double TwoCallers() {
  constexpr int kJobs = 500;
  ThreadPool pool(2);
  std::vector<double> times;
  const auto call = [&] {
    for (int i = 0; i < kJobs; ++i) {
      pool.ParallelFor(8, [](int64_t) {
        uint32_t x = 1;
        for (int k = 0; k < 4000; ++k) asm volatile("" : "+r"(x = x * 1664525u + 1013904223u));
      });
    }
  };
  for (int round = 0; round < kHostRounds; ++round) {
    times.push_back(Microseconds([&] {
                      std::thread other(call);
                      call();
                      other.join();
                    }) /
                    (2 * kJobs));
  }
  return Median(std::move(times));
}

// A result that is written once: memory that the process has not had, or that a run before has given back.
double WriteResult(int64_t bytes, bool is_fresh) {
  // Large blocks are given back to the system at once, small ones are held.
  const bool is_held = is_fresh && bytes < int64_t{32} << 20;
  const auto pool = HostBufferPool::Create(int64_t{1} << 40, is_fresh && !is_held ? 0 : int64_t{1} << 30);
  std::vector<double> times;
  std::vector<std::shared_ptr<Buffer>> held;
  for (int round = 0; round <= kHostRounds; ++round) {
    times.push_back(Microseconds([&] {
      auto buffer = pool->Allocate(bytes);
      if (!buffer.ok()) return;
      std::memset((*buffer)->address(), 1, static_cast<size_t>(bytes));
      if (is_held) held.push_back(*std::move(buffer));
    }));
  }
  times.erase(times.begin());
  return Median(std::move(times));
}

}  // namespace

std::vector<HostWorkload> HostWorkloads() {
  using std::chrono::microseconds;
  constexpr int64_t kMiB = int64_t{1} << 20;
  return {
      {"in_process_fork_join", "an empty job of 2 tasks", 2, &ForkJoin},
      {"in_process_fork_join_short", "2 tasks of 5 us, parked", 2,
       [] { return ForkJoinAfterRest(microseconds(5), TaskCost::kShort); }},
      {"in_process_fork_join_parked", "2 tasks of 200 us, parked", 2,
       [] { return ForkJoinAfterRest(microseconds(200), TaskCost::kUnknown); }},
      {"in_process_fork_join_two_callers", "8 tasks, 2 callers, a job", 2, &TwoCallers},
      {"in_process_result_1m_fresh", "1 MiB written, fresh", 1, [] { return WriteResult(kMiB, true); }},
      {"in_process_result_1m_reused", "the same, reused", 1, [] { return WriteResult(kMiB, false); }},
      {"in_process_result_64m_fresh", "64 MiB written, fresh", 1, [] { return WriteResult(64 * kMiB, true); }},
      {"in_process_result_64m_reused", "the same, reused", 1, [] { return WriteResult(64 * kMiB, false); }},
  };
}

}  // namespace tensord
