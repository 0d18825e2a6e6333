#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_POOL_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/mutex.h"

namespace tensord {

// Threads that compile, apart from those that run programs, with a bounded queue. Thread-safe. The destructor finishes
// what is queued and joins.
class CompilePool {
 public:
  struct Stats {
    int64_t queued = 0;
    int64_t running = 0;
  };

  // `niceness` is that of its threads, beyond that of who makes the pool.
  CompilePool(int threads, int64_t max_queued, int niceness = 0);
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  // For what comes from now on.
  void SetMaxQueued(int64_t max_queued);
  int64_t max_queued() const;

  // False, and nothing is kept, where the queue is full.
  bool Submit(std::function<void()> work);
  // QUEUE_FULL, with the limit and how many there would be.
  absl::Status RefuseFull() const;
  Stats stats() const;

 private:
  void Loop();

  mutable Mutex mutex_;
  CondVar wake_;
  int64_t max_queued_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_POOL_H_
