#include "engine/runtime/device_executor.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/refusal.h"

namespace tensord {

DeviceExecutor::DeviceExecutor(std::string device, Backend* backend, int workers, int64_t max_queued)
    : device_(std::move(device)), backend_(backend), max_queued_(max_queued) {
  threads_.reserve(static_cast<size_t>(workers));
  for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { Loop(); });
}

DeviceExecutor::~DeviceExecutor() {
  std::deque<Queued> refused;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    refused.swap(queue_);
    stats_.queued = 0;
  }
  wake_.SignalAll();
  for (Queued& queued : refused) {
    queued.request.done(Refuse(Refusal::kServerDraining, "the server is shutting down; try another replica"));
  }
  for (std::thread& thread : threads_) thread.join();
}

void DeviceExecutor::DropUnwantedLocked(std::vector<Queued>* dropped) {
  std::deque<Queued> wanted;
  for (Queued& queued : queue_) {
    if (CheckWanted(queued.request).ok()) {
      wanted.push_back(std::move(queued));
    } else {
      dropped->push_back(std::move(queued));
    }
  }
  queue_.swap(wanted);
  stats_.queued = static_cast<int64_t>(queue_.size());
  stats_.failed += static_cast<int64_t>(dropped->size());
}

absl::Status DeviceExecutor::Submit(RunRequest request) {
  std::vector<Queued> dropped;
  const absl::Status submitted = Enqueue(std::move(request), &dropped);
  for (Queued& queued : dropped) queued.request.done(CheckWanted(queued.request));
  if (submitted.ok()) wake_.Signal();
  return submitted;
}

absl::Status DeviceExecutor::Enqueue(RunRequest request, std::vector<Queued>* dropped) {
  MutexLock lock(&mutex_);
  if (stopping_) return Refuse(Refusal::kServerDraining, "the server is shutting down; try another replica");
  if (static_cast<int64_t>(queue_.size()) >= max_queued_) DropUnwantedLocked(dropped);
  if (static_cast<int64_t>(queue_.size()) >= max_queued_) {
    return Refuse(Refusal::kQueueFull,
                  absl::StrCat("the queue of ", device_, " is full: ", max_queued_, " runs wait; try again later"));
  }
  queue_.push_back({.request = std::move(request), .since = absl::Now()});
  ++stats_.queued;
  return absl::OkStatus();
}

DeviceExecutor::Stats DeviceExecutor::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

void DeviceExecutor::Loop() {
  while (true) {
    Queued queued;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) wake_.Wait(&mutex_);
      if (queue_.empty()) return;
      queued = std::move(queue_.front());
      queue_.pop_front();
      --stats_.queued;
      ++stats_.running;
    }
    const absl::Time start = absl::Now();
    absl::StatusOr<RunOutcome> outcome = [&]() -> absl::StatusOr<RunOutcome> {
      try {
        return RunProgram(queued.request, start - queued.since);
      } catch (const std::exception& e) {  // a library ran out of memory; the executor must live on
        return Refuse(Refusal::kInternal, absl::StrCat("the run failed: ", e.what()));
      }
    }();
    {
      MutexLock lock(&mutex_);
      --stats_.running;
      ++(outcome.ok() ? stats_.completed : stats_.failed);
      stats_.busy += absl::Now() - start;
    }
    queued.request.done(std::move(outcome));
  }
}

}  // namespace tensord
