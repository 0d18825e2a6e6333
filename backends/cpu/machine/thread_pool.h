#ifndef TENSORD_BACKENDS_CPU_MACHINE_THREAD_POOL_H_
#define TENSORD_BACKENDS_CPU_MACHINE_THREAD_POOL_H_

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>

#include "absl/functional/function_ref.h"
#include "engine/base/mutex.h"
#include "engine/base/program_at_work.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {

// The cost of a job's tasks, as known before they run.
enum class TaskCost {
  kUnknown,
  // About 10 µs at most, all about as long: parked workers are woken only for many of them. Workers take tasks from the
  // back, so that from run to run a thread finds the data it wrote in its own cache.
  kShort,
};

// Fork-join pool of the CPU backend; one serves the whole process. It owns its worker threads and joins them in the
// destructor, which must not run while a call is in progress. Thread-safe. Calls cannot fail; a system that refuses a
// thread while the pool is made ends the process.
//
// The caller takes part in its own job. Several callers have a job each, up to kMaxJobs. Callers and workers at work
// are never more than threads(), so a worker leaves its job between two tasks when another caller comes. Nobody waits
// for anybody else's job: a task that calls the pool again, and a caller that finds no room, run their tasks
// themselves, so nesting cannot deadlock. Any thread may run a task. Callers that want the same bits for any number of
// threads cut their work by sizes alone, never by threads().
//
// Workers spin for some 50 µs after a job and then park, because waking a parked thread costs its waker several
// microseconds and delays the job. A waker wakes two workers, which wake others. A worker is kept off the processor of
// its waker: schedulers that save energy put both onto one, where the woken worker waits until its waker is through.
class ThreadPool {
 public:
  static constexpr size_t kMaxJobs = 8;  // at once: workers look at each, and more callers work alone

  // The span of several jobs that one thread asks for one after the other. From the first job on the thread counts as
  // at work between them as well, so that no worker takes its processor for those moments. A series belongs to the
  // thread that made it, which has one at a time, and must not outlive the pool.
  class Series {
   public:
    explicit Series(ThreadPool* pool);
    ~Series();
    Series(const Series&) = delete;
    Series& operator=(const Series&) = delete;

   private:
    friend class ThreadPool;

    ThreadPool* const pool_;
    bool has_begun_ = false;
  };

  // `threads` counts the caller: 1 (or less) makes a pool without workers.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Returns the number of threads that a job may run on, the caller included.
  int threads() const { return threads_; }

  // Calls fn(0) … fn(tasks - 1), each once, in any order and on any thread, and returns when all have returned. The
  // caller then sees everything that they wrote. Does not allocate. A task worth less than about 1 µs is not worth
  // spreading. Returns false if the caller's work is no longer wanted (engine/base/stop_signal.h): then some tasks were
  // not called, or left early, and nothing that they write may be relied on. The signal goes with the tasks. An
  // exception of a task, because memory ran out, leaves as many of the others uncalled as a stop does, and is thrown
  // here once all have returned: the first one.
  bool ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t task)> fn, TaskCost cost = TaskCost::kUnknown);

  // The same over the half-open ranges [0, block), [block, 2 * block), … of [0, size). `block` must be positive.
  bool ParallelForBlocks(int64_t size, int64_t block, absl::FunctionRef<void(int64_t begin, int64_t end)> fn,
                         TaskCost cost = TaskCost::kUnknown);

 private:
  // The meeting point of threads, in a cache line of its own.
  struct alignas(64) Job {
    // Written by the caller that has taken the job, while the gate is shut.
    const absl::FunctionRef<void(int64_t)>* fn = nullptr;
    const WorkPlace* work = nullptr;  // of the caller's thread
    int64_t tasks = 0;
    StopSignal* stop = nullptr;
    alignas(64) std::atomic<bool> taken{false};
    bool has_ends = false;  // the caller takes tasks from the front, workers from the back
    // Counts the tasks taken from the front, and, times kFromBack, from the back.
    alignas(64) std::atomic<uint64_t> taken_tasks{0};
    // kOpen while the job may be entered, plus the number of workers inside.
    alignas(64) std::atomic<uint32_t> gate{0};
    std::atomic<int> worker_processor{-1};  // of the worker that came last
    std::atomic<bool> caller_waits{false};
    std::atomic<bool> failed{false};
    Mutex mutex;
    CondVar gate_emptied;
    std::exception_ptr failure ABSL_GUARDED_BY(mutex);  // the first
  };

  struct alignas(64) Worker {
    std::atomic<bool> parked{false};
    Mutex mutex;
    CondVar woken;  // parked became false
    std::thread thread;
    std::atomic<int> avoided{-1};  // the processor that it may not run on
  };

  // Returns null if all are taken.
  Job* TakeJob();
  // Returns the next task of a job, less than 0 if there is none.
  static int64_t TakeTask(Job* job, bool from_back);
  static int64_t NumLeft(const Job& job);
  // Runs a task, and keeps its exception.
  static void RunTask(Job* job, int64_t task);
  // Returns the tasks' exception; null if there was none.
  std::exception_ptr Spread(Job* job, int64_t tasks, absl::FunctionRef<void(int64_t)> fn, TaskCost cost);
  void RunAsCaller(Job* job, TaskCost cost);
  void RunAsWorker(Job* job, int worker);
  static void AwaitWorkers(Job* job);

  void WorkerLoop(int worker);
  // Enters every open job, one after the other.
  void TakePart(int worker);
  // Returns when somebody wakes it, or when there is work that `seen` does not show.
  void Park(int worker, uint64_t seen);
  // Returns the number of workers that may be at work beside the callers in `state`: the workers with the first
  // indices.
  int64_t RoomIn(uint64_t state) const;
  bool HasParked() const { return parked_.load(std::memory_order_relaxed) > 0; }
  void WakeTwo();
  void Wake(Worker* worker);
  // Takes it to another processor where it may have to wait for this one.
  void KeepOff(int processor, Worker* worker);
  // Called by the worker.
  void LeaveCallersProcessor(int worker);

  const int threads_;
  cpu_set_t processors_;  // of the thread that made the pool
  std::array<Job, kMaxJobs> jobs_;
  // The number of jobs so far, and in the lower half the callers that are at work. Workers watch it.
  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int64_t> parked_{0};
  std::atomic<int> caller_processor_{-1};  // of the last job's caller
  std::atomic<bool> stop_{false};
  std::unique_ptr<Worker[]> workers_;
};

// 0 `threads`: one for each processor that the process may use, by its affinity and its control groups' share of time.
std::unique_ptr<ThreadPool> MakeThreadPool(int threads);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MACHINE_THREAD_POOL_H_
