#include "engine/runtime/device_executor.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord {
namespace {

absl::StatusOr<RunOutcome> RunProgram(const RunRequest& request, absl::Duration queue_time) {
  const absl::Time start = absl::Now();
  if (request.cancel != nullptr && request.cancel->cancelled()) {
    return Refuse(Refusal::kCancelled, "cancelled while it was queued");
  }
  if (start >= request.deadline) {
    return Refuse(Refusal::kDeadlineExceeded, absl::StrCat("the deadline passed after ", absl::FormatDuration(queue_time),
                                                           " in the queue; allow more time"));
  }
  const CompiledProgram& program = *request.program;
  std::vector<ConcreteType> types;
  types.reserve(request.arguments.size());
  for (const HostTensor& argument : request.arguments) types.push_back(argument.type);
  ASSIGN_OR_RETURN(const std::shared_ptr<const BoundProgram> bound, program.Bind(types));

  std::vector<BufferPtr> arguments;
  arguments.reserve(request.arguments.size());
  for (const HostTensor& argument : request.arguments) {
    ASSIGN_OR_RETURN(BufferPtr buffer, program.backend()->Import(argument.bytes.get(), argument.type.num_bytes(),
                                                                 argument.bytes));
    arguments.push_back(std::move(buffer));
  }
  ASSIGN_OR_RETURN(std::vector<BufferPtr> results, bound->Run(arguments));

  RunOutcome outcome{.queue_time = queue_time, .peak_bytes = bound->peak_bytes()};
  for (size_t i = 0; i < results.size(); ++i) {
    ASSIGN_OR_RETURN(std::shared_ptr<const void> bytes, program.backend()->Export(std::move(results[i])));
    const Slot slot = program.program().outputs[i].slot;
    outcome.results.push_back({.type = bound->slot_types()[static_cast<size_t>(slot)], .bytes = std::move(bytes)});
  }
  outcome.run_time = absl::Now() - start;
  return outcome;
}

}  // namespace

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

absl::Status DeviceExecutor::Submit(RunRequest request) {
  {
    MutexLock lock(&mutex_);
    if (stopping_) return Refuse(Refusal::kServerDraining, "the server is shutting down; try another replica");
    if (static_cast<int64_t>(queue_.size()) >= max_queued_) {
      return Refuse(Refusal::kQueueFull,
                    absl::StrCat("the queue of ", device_, " is full: ", max_queued_, " runs wait; try again later"));
    }
    queue_.push_back({.request = std::move(request), .since = absl::Now()});
    ++stats_.queued;
  }
  wake_.Signal();
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
