#ifndef TENSORD_BACKENDS_CPU_THREAD_POOL_H_
#define TENSORD_BACKENDS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/base/mutex.h"

namespace tensord::cpu {

// Fork-join pool of the CPU backend; one serves the whole process. It owns its worker threads and joins them in the
// destructor, which must not run while a call is in progress. Thread-safe. Calls cannot fail;
// a system that refuses a thread while the pool is made ends the process.
//
// The caller takes part in its own job. One job is spread at a time: a second caller, or a task that calls the pool
// again, runs its tasks itself instead of waiting, so callers never block each other and nesting cannot deadlock.
// Which thread runs a task is unspecified; callers that want the same bits for any number of threads cut their
// work by sizes alone, never by threads().
//
// Workers spin for kSpin after a job, because waking a parked thread costs more than a small job, and then park.
class ThreadPool {
 public:
  // `threads` counts the caller: 1 (or less) makes a pool without workers.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // How many threads a job may run on, the caller included.
  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls fn(0) … fn(tasks - 1), each once, in any order and on any thread, and returns when all have returned. What
  // they wrote is then visible to the caller. Does not allocate. A task worth less than about 1 µs is not worth
  // spreading.
  void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t task)> fn);

  // The same over the half-open ranges [0, block), [block, 2 * block), … of [0, size). `block` must be positive.
  void ParallelForBlocks(int64_t size, int64_t block, absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

 private:
  void WorkerLoop();
  // Enters the open job, if there is one, and runs tasks until none is left.
  void TakePart();
  void RunTasks();
  void WakeWorkers(int64_t wanted);
  void AwaitWorkers();
  // Returns once the epoch differs from `seen`, spinning first and then parked.
  uint32_t AwaitEpoch(uint32_t seen);

  // The job. Written by the caller that holds busy_, while the gate is shut and empty.
  const absl::FunctionRef<void(int64_t)>* job_ = nullptr;
  int64_t tasks_ = 0;

  // Each on its own cache line: they are what threads meet on.
  alignas(64) std::atomic<bool> busy_{false};
  alignas(64) std::atomic<int64_t> next_task_{0};
  // kOpen while a job may be entered, plus the number of workers inside.
  alignas(64) std::atomic<uint32_t> gate_{0};
  // Counts jobs; workers watch it.
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<int32_t> parked_{0};
  std::atomic<bool> caller_waits_{false};
  std::atomic<bool> stop_{false};

  Mutex mutex_;
  CondVar work_arrived_;  // epoch_ or stop_ changed while a worker was parked
  CondVar gate_emptied_;

  std::vector<std::thread> workers_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_THREAD_POOL_H_
