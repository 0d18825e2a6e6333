#include "backends/cpu/machine/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/base/alternate_stack.h"
#include "engine/base/control_group.h"
#include "engine/base/stop_signal.h"
#include "engine/base/thread_niceness.h"

namespace tensord::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Fields of words that are counted in.
constexpr uint32_t kOpen = uint32_t{1} << 31;
constexpr uint64_t kOneJob = uint64_t{1} << 32;
constexpr uint64_t kCallers = kOneJob - 1;
constexpr uint64_t kFromBack = uint64_t{1} << 32;
constexpr int64_t kMostWithEnds = int64_t{1} << 30;  // tasks: both counts fit one word
constexpr auto kSpin = std::chrono::microseconds(50);
// The work left of a job for which a parked worker is woken: it comes some 20 µs later.
constexpr auto kWorthWaking = std::chrono::microseconds(40);
// The time between two wakings by one job: workers that it woke may have had to leave again.
constexpr auto kWakeAgain = std::chrono::microseconds(100);
// Pauses between two looks at the clock: about a microsecond.
constexpr int kPausesPerLook = 32;

// Set while this thread runs tasks of any pool: its own calls of a pool then run serially.
thread_local bool t_inside_job = false;
// The series of this thread.
thread_local ThreadPool::Series* t_series = nullptr;

// While it exists this thread runs tasks.
class InsideJob {
 public:
  InsideJob() { t_inside_job = true; }
  ~InsideJob() { t_inside_job = false; }
  InsideJob(const InsideJob&) = delete;
  InsideJob& operator=(const InsideJob&) = delete;
};

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Tells whether this thread's work is known to be unwanted.
bool IsStopped() {
  const StopSignal* const stop = StopSignal::Current();
  return stop != nullptr && stop->is_set();
}

// Yields to the thread for which this one spins, if it waits for this very processor.
void YieldIfOn(int processor) {
  if (sched_getcpu() == processor) sched_yield();
}

}  // namespace

ThreadPool::Series::Series(ThreadPool* pool) : pool_(pool) { t_series = this; }

ThreadPool::Series::~Series() {
  t_series = nullptr;
  if (has_begun_) pool_->state_.fetch_sub(1);
}

ThreadPool::ThreadPool(int threads)
    : threads_(std::max(threads, 1)),
      // An array of none would be a pointer behind its memory, which leak checkers do not follow.
      workers_(threads_ > 1 ? new Worker[static_cast<size_t>(threads_ - 1)] : nullptr) {
  CPU_ZERO(&processors_);
  sched_getaffinity(0, sizeof(processors_), &processors_);  // none where there are more than fit: nothing is avoided
  for (int i = 0; i < threads_ - 1; ++i) {
    std::thread& thread = workers_[static_cast<size_t>(i)].thread;
    thread = std::thread([this, i] { WorkerLoop(i); });
    pthread_setname_np(thread.native_handle(), "tensord-cpu");
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  state_.fetch_add(kOneJob);
  for (int i = 0; i < threads_ - 1; ++i) Wake(&workers_[static_cast<size_t>(i)]);
  for (int i = 0; i < threads_ - 1; ++i) workers_[static_cast<size_t>(i)].thread.join();
}

bool ThreadPool::ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> fn, TaskCost cost) {
  if (tasks <= 1 || threads_ == 1 || t_inside_job) {
    for (int64_t task = 0; task < tasks; ++task) {
      if (StopRequested()) return false;
      fn(task);
    }
    return !IsStopped();
  }
  Series* const series = t_series != nullptr && t_series->pool_ == this ? t_series : nullptr;
  // Counts the caller before its job can be entered, so that no worker takes the caller's place.
  if (series == nullptr || !std::exchange(series->has_begun_, true)) state_.fetch_add(1);
  const absl::Cleanup leave = [&] {
    if (series == nullptr) state_.fetch_sub(1);
  };
  if (Job* const job = TakeJob(); job != nullptr) {
    const std::exception_ptr failure = Spread(job, tasks, fn, cost);
    job->taken.store(false, std::memory_order_release);
    if (failure != nullptr) std::rethrow_exception(failure);
  } else {
    const InsideJob inside;
    for (int64_t task = 0; task < tasks && !StopRequested(); ++task) fn(task);
  }
  return !IsStopped();
}

bool ThreadPool::ParallelForBlocks(int64_t size, int64_t block, absl::FunctionRef<void(int64_t, int64_t)> fn,
                                   TaskCost cost) {
  if (size <= 0) return !IsStopped();
  const int64_t blocks = (size - 1) / block + 1;
  const auto run = [&](int64_t i) {
    const int64_t begin = i * block;
    fn(begin, std::min(size - begin, block) + begin);
  };
  return ParallelFor(blocks, run, cost);
}

ThreadPool::Job* ThreadPool::TakeJob() {
  for (Job& job : jobs_) {
    if (!job.taken.load(std::memory_order_relaxed) && !job.taken.exchange(true, std::memory_order_acquire)) return &job;
  }
  return nullptr;
}

void ThreadPool::RunTask(Job* job, int64_t task) {
  try {
    (*job->fn)(task);
  } catch (...) {
    MutexLock lock(&job->mutex);
    if (job->failure == nullptr) job->failure = std::current_exception();
    job->failed.store(true, std::memory_order_relaxed);
  }
}

std::exception_ptr ThreadPool::Spread(Job* job, int64_t tasks, absl::FunctionRef<void(int64_t)> fn, TaskCost cost) {
  job->fn = &fn;
  job->work = WorkOfThisThread();
  job->tasks = tasks;
  job->stop = StopSignal::Current();
  job->has_ends = cost == TaskCost::kShort && tasks <= kMostWithEnds;
  job->taken_tasks.store(0, std::memory_order_relaxed);
  const int processor = sched_getcpu();
  if (caller_processor_.load(std::memory_order_relaxed) != processor) {
    caller_processor_.store(processor, std::memory_order_relaxed);
  }
  job->gate.fetch_or(kOpen, std::memory_order_release);
  state_.fetch_add(kOneJob);
  RunAsCaller(job, cost);
  job->gate.fetch_and(~kOpen, std::memory_order_acq_rel);
  AwaitWorkers(job);
  if (!job->failed.load(std::memory_order_relaxed)) return nullptr;
  job->failed.store(false, std::memory_order_relaxed);
  MutexLock lock(&job->mutex);
  return std::exchange(job->failure, nullptr);
}

void ThreadPool::RunAsCaller(Job* job, TaskCost cost) {
  const InsideJob inside;
  Clock::time_point first_seen, last_woken;  // workers that are parked, and might be here
  int64_t done_since = 0;
  // Sequentially consistent on both sides: either this sees a worker parked, or the worker sees the new state.
  if (cost == TaskCost::kUnknown && parked_.load() > 0 && RoomIn(state_.load()) > 0) {
    WakeTwo();
    first_seen = last_woken = Clock::now();
  } else if (HasParked()) {
    first_seen = Clock::now();
  }
  while (true) {
    const int64_t task = TakeTask(job, /*from_back=*/false);
    if (task < 0 || StopRequested() || job->failed.load(std::memory_order_relaxed)) break;
    RunTask(job, task);
    GiveWay();
    const int64_t left = NumLeft(*job);
    if (left < 1 || !HasParked() || RoomIn(state_.load(std::memory_order_relaxed)) == 0) continue;
    const Clock::time_point now = Clock::now();
    if (first_seen == Clock::time_point()) {
      first_seen = now;
      continue;
    }
    ++done_since;
    if ((now - first_seen) / done_since * left < kWorthWaking || now - last_woken < kWakeAgain) continue;
    WakeTwo();
    last_woken = now;
  }
}

void ThreadPool::RunAsWorker(Job* job, int worker) {
  // Looked at in this order: everybody is counting tasks just now.
  if (HasParked() && NumLeft(*job) > 0) WakeTwo();
  LeaveCallersProcessor(worker);
  job->worker_processor.store(sched_getcpu(), std::memory_order_relaxed);
  const InsideJob inside;
  const StopSignal::Scope scope(job->stop);
  const HelpAtWork help(job->work);
  while (RoomIn(state_.load(std::memory_order_relaxed)) > worker) {
    const int64_t task = TakeTask(job, /*from_back=*/true);
    if (task < 0 || StopRequested() || job->failed.load(std::memory_order_relaxed)) break;
    RunTask(job, task);
    GiveWay();
  }
}

int64_t ThreadPool::TakeTask(Job* job, bool from_back) {
  if (!job->has_ends) {
    const int64_t task = static_cast<int64_t>(job->taken_tasks.fetch_add(1, std::memory_order_relaxed));
    return task < job->tasks ? task : -1;
  }
  const uint64_t taken = job->taken_tasks.fetch_add(from_back ? kFromBack : 1, std::memory_order_relaxed);
  const int64_t front = static_cast<int64_t>(taken % kFromBack), back = static_cast<int64_t>(taken / kFromBack);
  if (front + back >= job->tasks) return -1;
  return from_back ? job->tasks - 1 - back : front;
}

int64_t ThreadPool::NumLeft(const Job& job) {
  const uint64_t taken = job.taken_tasks.load(std::memory_order_relaxed);
  if (!job.has_ends) return job.tasks - static_cast<int64_t>(taken);
  return job.tasks - static_cast<int64_t>(taken % kFromBack) - static_cast<int64_t>(taken / kFromBack);
}

void ThreadPool::AwaitWorkers(Job* job) {
  Clock::time_point end;  // a look at the clock takes as long as the end of a small job
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (job->gate.load(std::memory_order_acquire) == 0) return;
      Pause();
    }
    if (end == Clock::time_point()) end = Clock::now() + kSpin;
    YieldIfOn(job->worker_processor.load(std::memory_order_relaxed));
  } while (Clock::now() < end);
  MutexLock lock(&job->mutex);
  job->caller_waits.store(true);
  while (job->gate.load() != 0) job->gate_emptied.Wait(&job->mutex);
  job->caller_waits.store(false);
}

int64_t ThreadPool::RoomIn(uint64_t state) const {
  return std::max<int64_t>(0, threads_ - static_cast<int64_t>(state & kCallers));
}

void ThreadPool::WakeTwo() {
  int woken = 0;
  const int64_t room = std::min<int64_t>(RoomIn(state_.load(std::memory_order_relaxed)), threads_ - 1);
  for (int64_t i = 0; i < room && woken < 2; ++i) {
    Worker& worker = workers_[static_cast<size_t>(i)];
    if (!worker.parked.load(std::memory_order_relaxed)) continue;
    Wake(&worker);
    ++woken;
  }
}

void ThreadPool::Wake(Worker* worker) {
  if (!worker->parked.exchange(false)) return;
  parked_.fetch_sub(1);
  KeepOff(sched_getcpu(), worker);
  { MutexLock lock(&worker->mutex); }  // a worker between its last look and its wait holds the mutex
  worker->woken.Signal();
}

void ThreadPool::KeepOff(int processor, Worker* worker) {
  if (worker->avoided.load(std::memory_order_relaxed) == processor || processor < 0 || processor >= CPU_SETSIZE) return;
  cpu_set_t others = processors_;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0) return;
  worker->avoided.store(processor, std::memory_order_relaxed);
  // Fails where the processors of the process have changed since: then it runs where the system lets it.
  pthread_setaffinity_np(worker->thread.native_handle(), sizeof(others), &others);
}

void ThreadPool::LeaveCallersProcessor(int worker) {
  const int caller = caller_processor_.load(std::memory_order_relaxed);
  if (sched_getcpu() == caller) KeepOff(caller, &workers_[static_cast<size_t>(worker)]);
}

void ThreadPool::TakePart(int worker) {
  for (size_t i = 0; i < kMaxJobs; ++i) {
    Job& job = jobs_[(static_cast<size_t>(worker) + i) % kMaxJobs];
    if ((job.gate.load(std::memory_order_relaxed) & kOpen) == 0) continue;
    // Entering first and looking second leaves the caller no moment in which it could miss this thread.
    if ((job.gate.fetch_add(1) & kOpen) != 0) RunAsWorker(&job, worker);
    if (job.gate.fetch_sub(1) == 1 && job.caller_waits.load()) {
      { MutexLock lock(&job.mutex); }
      job.gate_emptied.Signal();
    }
  }
}

void ThreadPool::Park(int worker, uint64_t seen) {
  Worker& me = workers_[static_cast<size_t>(worker)];
  MutexLock lock(&me.mutex);
  me.parked.store(true);
  parked_.fetch_add(1);
  const uint64_t state = state_.load();
  const bool has_work = state != seen && RoomIn(state) > worker;
  if ((has_work || stop_.load()) && me.parked.exchange(false)) parked_.fetch_sub(1);
  while (me.parked.load()) me.woken.Wait(&me.mutex);
}

void ThreadPool::WorkerLoop(int worker) {
  const AlternateStack stack;
  uint64_t seen = 0;
  Clock::time_point spin_end = Clock::now() + kSpin;
  int pauses = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const uint64_t state = state_.load(std::memory_order_acquire);
    const bool has_room = RoomIn(state) > worker;
    if (state != seen && has_room) {
      seen = state;
      TakePart(worker);
      spin_end = Clock::now() + kSpin;
      pauses = 0;
      continue;
    }
    // If callers need all processors, a spinning worker would take one from them.
    if (has_room && ++pauses < kPausesPerLook) {
      Pause();
      continue;
    }
    pauses = 0;
    if (has_room) {
      LeaveCallersProcessor(worker);
      GiveWay();
    } else {
      sched_yield();
    }
    if (Clock::now() < spin_end) continue;
    Park(worker, seen);
    spin_end = Clock::now() + kSpin;
  }
}

std::unique_ptr<ThreadPool> MakeThreadPool(int threads) {
  return std::make_unique<ThreadPool>(threads > 0 ? threads : UsableProcessors());
}

}  // namespace tensord::cpu
