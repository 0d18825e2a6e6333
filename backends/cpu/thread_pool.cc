#include "backends/cpu/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

namespace tensord::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kOpen = uint32_t{1} << 31;
constexpr auto kSpin = std::chrono::microseconds(50);
// Pauses between two looks at the clock: about a microsecond.
constexpr int kPausesPerLook = 32;

// Set while this thread runs tasks of any pool: what it then asks for, it gets serially.
thread_local bool t_inside_job = false;

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() or kSpin is over; says whether done() held.
template <typename Done>
bool SpinUntil(Done done) {
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (Clock::now() < end);
  return done();
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int workers = std::max(threads, 1) - 1;
  workers_.reserve(static_cast<size_t>(workers));
  for (int i = 0; i < workers; ++i) {
    workers_.emplace_back([this] { WorkerLoop(); });
    pthread_setname_np(workers_.back().native_handle(), "tensord-cpu");
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(&mutex_);
    stop_.store(true);
    epoch_.fetch_add(1);
  }
  work_arrived_.SignalAll();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> fn) {
  const bool spread =
      tasks > 1 && !workers_.empty() && !t_inside_job && !busy_.exchange(true, std::memory_order_acquire);
  if (!spread) {
    for (int64_t task = 0; task < tasks; ++task) fn(task);
    return;
  }
  job_ = &fn;
  tasks_ = tasks;
  next_task_.store(0, std::memory_order_relaxed);
  gate_.fetch_or(kOpen, std::memory_order_release);
  epoch_.fetch_add(1);
  WakeWorkers(tasks - 1);

  RunTasks();

  gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  AwaitWorkers();
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::ParallelForBlocks(int64_t size, int64_t block, absl::FunctionRef<void(int64_t, int64_t)> fn) {
  if (size <= 0) return;
  const int64_t blocks = (size - 1) / block + 1;
  ParallelFor(blocks, [&](int64_t i) {
    const int64_t begin = i * block;
    fn(begin, std::min(size - begin, block) + begin);
  });
}

void ThreadPool::RunTasks() {
  t_inside_job = true;
  while (true) {
    const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_) break;
    (*job_)(task);
  }
  t_inside_job = false;
}

void ThreadPool::WakeWorkers(int64_t wanted) {
  // Sequentially consistent on both sides: either this sees the worker parked, or the worker sees the new epoch.
  const int64_t sleepers = std::min<int64_t>(parked_.load(), wanted);
  if (sleepers <= 0) return;
  { MutexLock lock(&mutex_); }  // a worker between its last look and its wait holds the mutex
  for (int64_t i = 0; i < sleepers; ++i) work_arrived_.Signal();
}

void ThreadPool::AwaitWorkers() {
  const auto empty = [this] { return gate_.load(std::memory_order_acquire) == 0; };
  if (SpinUntil(empty)) return;
  MutexLock lock(&mutex_);
  caller_waits_.store(true);
  while (gate_.load() != 0) gate_emptied_.Wait(&mutex_);
  caller_waits_.store(false);
}

void ThreadPool::TakePart() {
  // Entering first and looking second leaves the caller no moment in which it could miss this thread.
  if ((gate_.fetch_add(1) & kOpen) != 0) RunTasks();
  if (gate_.fetch_sub(1) == 1 && caller_waits_.load()) {
    { MutexLock lock(&mutex_); }
    gate_emptied_.Signal();
  }
}

uint32_t ThreadPool::AwaitEpoch(uint32_t seen) {
  if (!SpinUntil([&] { return epoch_.load(std::memory_order_acquire) != seen; })) {
    MutexLock lock(&mutex_);
    parked_.fetch_add(1);
    while (epoch_.load() == seen) work_arrived_.Wait(&mutex_);
    parked_.fetch_sub(1);
  }
  return epoch_.load(std::memory_order_acquire);
}

void ThreadPool::WorkerLoop() {
  uint32_t seen = 0;
  while (!stop_.load()) {
    seen = AwaitEpoch(seen);
    TakePart();
  }
}

}  // namespace tensord::cpu
