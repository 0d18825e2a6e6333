#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_DEVICE_EXECUTOR_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_DEVICE_EXECUTOR_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/shares.h"
#include "engine/exec/backend/backend.h"
#include "engine/runtime/compile/mean_time.h"
#include "engine/runtime/devices/device_events.h"
#include "engine/runtime/devices/run_queue.h"
#include "engine/runtime/devices/runs_aside.h"

namespace tensord {

// Runs programs on one device: a bounded RunQueue and worker threads, one run at a time each. Refuses a run at once if
// there is no place, if it can never fit into memory, or if its deadline ends before its turn. A waiting run that is
// cancelled or expires is answered at that time, by a thread that watches. A run starts when its memory fits beside
// that of the running ones. Meanwhile no run that ranks after it starts, but for the moment in which a worker binds its
// sizes.
//
// A run that decides sizes may stop in its middle: for memory, or for a stage that its RunRequest::compile_pool binds
// where the backend prepares slowly. It keeps its memory, holds no worker, and goes before all that has not begun, for
// these may wait for its memory. A pool that binds never waits for a run.
//
// Thread-safe. The backend must outlive it; the destructor refuses queued runs and those that have stopped with
// SERVER_DRAINING, lets others finish, and joins.
class DeviceExecutor {
 public:
  struct Options {
    int workers = 1;
    int64_t max_queued = 1024;
    int64_t max_queued_per_tenant = std::numeric_limits<int64_t>::max();
    absl::Duration max_wait = absl::InfiniteDuration();  // expected, before a run starts
    absl::Duration ageing = absl::Seconds(1);            // as RunQueue's
    int64_t memory_bytes = 0;                            // of all runs at once and what is resident; 0: not bounded
    int niceness = 0;                                    // of workers, beyond that of who makes the executor
  };
  // The options that may change while it runs.
  struct Bounds {
    int64_t max_queued = 1024;
    int64_t max_queued_per_tenant = std::numeric_limits<int64_t>::max();
    absl::Duration max_wait = absl::InfiniteDuration();
    absl::Duration ageing = absl::Seconds(1);
    int64_t memory_bytes = 0;
  };
  struct Stats {
    int64_t queued = 0;
    std::array<int64_t, kNumPriorityClasses> queued_by_class{};
    absl::Duration oldest_wait;
    int64_t running = 0;  // with those that have stopped in their middle
    int64_t completed = 0;
    int64_t failed = 0;
    int64_t promised_bytes = 0;        // to those that run; nothing is counted where memory is not bounded
    int64_t queued_bytes = 0;          // of the arguments of what waits
    int64_t out_of_memory = 0;         // runs that were refused because they can have no room
    std::vector<absl::Duration> busy;  // by worker
    DeviceEvents::Counts events;
  };

  DeviceExecutor(std::string device, Backend* backend, const Options& options);
  ~DeviceExecutor();
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;

  // Refuses queued and new runs, and waits for started ones. News of its device's memory may still come later. For the
  // owner alone.
  void Stop();

  const std::string& device() const { return device_; }
  // Returns the events of runs of the device's programs, here or on the threads that received them.
  DeviceEvents* events() { return &events_; }
  Backend* backend() const { return backend_; }
  // Tells whether runs take processors that calls need too.
  bool computes_here() const { return computes_here_; }
  int workers() const { return static_cast<int>(threads_.size()); }

  // Submits a run. After OK `done` is called once. Refused, and `done` is not called: CANCELLED, DEADLINE_EXCEEDED;
  // QUEUE_FULL if the queue or the tenant's part of it is, or the wait is too long; DEADLINE_UNREACHABLE;
  // OUT_OF_MEMORY.
  absl::Status Submit(RunRequest request);
  // Returns the refusal that Submit would give now to a run whose arguments are not there yet.
  absl::Status CheckRoom(const RunRequest& request);
  // Returns the time at which one of these two last refused a run because of the waiting ones.
  absl::Time last_full() const { return absl::FromUnixNanos(last_full_ns_.load(std::memory_order_relaxed)); }
  // Sets the bounds of later runs. A waiting run keeps its place, unless it can never have the memory that it needs.
  // Started runs keep their promised memory; those that began without a bound are not counted.
  void SetBounds(const Bounds& bounds);
  Bounds bounds() const;
  // Adds to the bytes, or with a negative number takes from them, that stay on the device beside runs. A run, also a
  // waiting one, is refused if even alone it has no room beside them.
  void AddResident(int64_t more);
  Stats stats() const;
  // Returns each tenant's share of the waiting runs.
  Shares TenantShares() const;

 private:
  static absl::Status Draining();
  // Returns the bytes that a run takes beside resident tensors.
  static int64_t BytesBeside(const RunRequest& request, int64_t peak_bytes);

  void WorkLoop(size_t worker);
  void WatchLoop();
  absl::Status CheckRoomLocked(const RunRequest& request, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks that the waiting runs leave it a place, soon enough.
  absl::Status CheckPlaceLocked(const RunRequest& request, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // QUEUE_FULL of the whole queue, or of the tenant's part of it.
  absl::Status RefusePlaceLocked(bool of_tenant, int64_t most, int64_t actual) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckWaitLocked(const RunRequest& request, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails with OUT_OF_MEMORY, counted, for a run without room beside resident tensors.
  absl::Status CheckMemoryLocked(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Enqueue(uint64_t id, QueuedRun run);
  void Cancelled(uint64_t id);
  // Takes expired runs out of the queue, for the watching thread to answer.
  void ExpireLocked(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveLocked(QueuedRun run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has a run leave that has stopped in its middle.
  void LeaveAsideLocked(QueuedRun run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(QueuedRun run, absl::Status status) const;

  bool IsBoundedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return bounds_.memory_bytes > 0; }
  bool FitsLocked(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayStartLocked(const QueuedRun& run) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the next run, counted as running; waits for one. Nothing when the executor stops.
  std::optional<QueuedRun> TakeNext();
  // Takes a run that may go on in its middle, or is to end there.
  std::optional<QueuedRun> TakeAsideLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Binds a run's sizes to learn the memory that it takes, and promises that memory. False: the memory does not fit
  // now, and the run waits again.
  absl::StatusOr<bool> PromiseBound(QueuedRun* run);
  // Promises more to a run that goes on. False: it is not free now, and the run wants it.
  absl::StatusOr<bool> PromiseMore(QueuedRun* run, int64_t peak_bytes);
  // Begins a run or goes on with it. Nothing: it has stopped in its middle.
  absl::StatusOr<std::optional<RunOutcome>> Execute(QueuedRun* run, absl::Time start);
  // Puts a run aside that has stopped, after so much of the worker's time, and has the stage bound that it waits for. A
  // refusal ends it instead.
  absl::Status SetAside(QueuedRun* run, size_t worker, absl::Duration used);
  void Finish(const QueuedRun& run, size_t worker, bool ok, absl::Duration used);
  // Counts the end of a run that has begun.
  void EndLocked(const QueuedRun& run, bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ChargeAnswer(const QueuedRun& run, size_t worker, absl::Duration used);
  bool StartsInVain(const QueuedRun& run, absl::Time now) const;

  // The way for stages to an executor, as long as it exists. Its lock is taken before the executor's.
  struct Door {
    Mutex mutex;
    DeviceExecutor* executor ABSL_GUARDED_BY(mutex) = nullptr;
  };
  void StageIsBound(uint64_t id, absl::StatusOr<BegunRun::BoundPtr> stage);

  // The last refusal for want of a free place.
  struct FullQueue {
    bool of_tenant = false;
    int64_t most = 0;
    int64_t actual = 0;
    absl::Duration retry_after;
    absl::Status refusal;
  };

  const std::string device_;
  Backend* const backend_;
  const bool computes_here_;
  const Options options_;
  const std::shared_ptr<Door> door_ = std::make_shared<Door>();
  std::atomic<uint64_t> last_id_{0};
  std::atomic<int64_t> last_full_ns_{0};  // since 1970
  DeviceEvents events_;
  MeanTime usual_;  // of a run of any program
  mutable Mutex mutex_;
  CondVar wake_;   // workers
  CondVar leave_;  // who watches
  Bounds bounds_ ABSL_GUARDED_BY(mutex_);
  int64_t resident_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  RunQueue queue_ ABSL_GUARDED_BY(mutex_);
  RunsAside aside_ ABSL_GUARDED_BY(mutex_);
  FullQueue full_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, absl::Time> ends_ ABSL_GUARDED_BY(mutex_);  // of what runs, where it is expected
  std::vector<QueuedRun> leaving_ ABSL_GUARDED_BY(mutex_);
  absl::Time watched_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // when the watching thread looks again
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Stats stats_ ABSL_GUARDED_BY(mutex_);  // those of the queue are filled in by stats()
  std::thread watcher_;                  // the threads last: they use everything above
  std::vector<std::thread> threads_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_DEVICE_EXECUTOR_H_
