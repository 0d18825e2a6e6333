#include "engine/runtime/compile_pool.h"

#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/thread_niceness.h"

namespace tensord {

CompilePool::CompilePool(int threads, int64_t max_queued, int niceness) : max_queued_(max_queued) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, niceness] {
      if (niceness > 0) LowerThisThread(niceness);
      Loop();
    });
  }
}

CompilePool::~CompilePool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.SignalAll();
  for (std::thread& thread : threads_) thread.join();
}

bool CompilePool::Submit(std::function<void()> work) {
  {
    MutexLock lock(&mutex_);
    if (stopping_ || static_cast<int64_t>(queue_.size()) >= max_queued_) return false;
    queue_.push_back(std::move(work));
  }
  wake_.Signal();
  return true;
}

absl::Status CompilePool::RefuseFull() const {
  const int64_t most = max_queued();
  return RefuseLimit(Refusal::kQueueFull, "compiler.queue_length", most, most + 1, "compilations that wait");
}

void CompilePool::SetMaxQueued(int64_t max_queued) {
  MutexLock lock(&mutex_);
  max_queued_ = max_queued;
}

int64_t CompilePool::max_queued() const {
  MutexLock lock(&mutex_);
  return max_queued_;
}

CompilePool::Stats CompilePool::stats() const {
  MutexLock lock(&mutex_);
  return {.queued = static_cast<int64_t>(queue_.size()), .running = running_};
}

void CompilePool::Loop() {
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) wake_.Wait(&mutex_);
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
      ++running_;
    }
    work();
    work = nullptr;  // what it holds goes before it is said to be over
    MutexLock lock(&mutex_);
    --running_;
  }
}

}  // namespace tensord
