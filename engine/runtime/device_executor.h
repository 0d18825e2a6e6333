#ifndef TENSORD_ENGINE_RUNTIME_DEVICE_EXECUTOR_H_
#define TENSORD_ENGINE_RUNTIME_DEVICE_EXECUTOR_H_

#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/exec/backend.h"
#include "engine/runtime/run.h"

namespace tensord {

// Runs programs on one device: a bounded first-in-first-out queue and worker threads, one run at a time each.
// Thread-safe. A run whose deadline has passed or that was cancelled while it was queued is refused without being
// started. The backend must outlive it; the destructor refuses what is queued with SERVER_DRAINING, lets started runs
// finish, and joins.
class DeviceExecutor {
 public:
  struct Stats {
    int64_t queued = 0;
    int64_t running = 0;
    int64_t completed = 0;
    int64_t failed = 0;
    absl::Duration busy;  // of all workers together
  };

  DeviceExecutor(std::string device, Backend* backend, int workers, int64_t max_queued);
  ~DeviceExecutor();
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;

  const std::string& device() const { return device_; }
  Backend* backend() const { return backend_; }
  int workers() const { return static_cast<int>(threads_.size()); }

  // QUEUE_FULL where the queue is, of runs that somebody still waits for; `done` is not called then.
  absl::Status Submit(RunRequest request);
  Stats stats() const;

 private:
  struct Queued {
    RunRequest request;
    absl::Time since;
  };

  void Loop();
  absl::Status Enqueue(RunRequest request, std::vector<Queued>* dropped);
  // Takes out of the queue what nobody waits for any more.
  void DropUnwantedLocked(std::vector<Queued>* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string device_;
  Backend* const backend_;
  const int64_t max_queued_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICE_EXECUTOR_H_
