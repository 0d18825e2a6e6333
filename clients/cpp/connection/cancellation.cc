#include "clients/cpp/connection/cancellation.h"

#include <utility>

#include "absl/time/clock.h"
#include "clients/cpp/connection/steady_time.h"
#include "clients/cpp/connection/transport_end.h"

namespace tensord::client {
namespace {

thread_local Cancellation* of_this_thread = nullptr;

}  // namespace

Cancellation::Scope::Scope(Cancellation* cancellation) : outer_(std::exchange(of_this_thread, cancellation)) {}

Cancellation::Scope::~Scope() { of_this_thread = outer_; }

void Cancellation::Step::Hurry() {
  if (is_hurried) return;
  is_hurried = true;
  late.Set(queue, ToGrpcDeadline(SteadyNow() + kEndWithin), &late);
  context->TryCancel();
}

void Cancellation::Cancel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_cancelled_ = true;
  if (step_ != nullptr) step_->Hurry();
  cancelled_.notify_all();
}

bool AwaitStep(grpc::ClientContext& context, grpc::CompletionQueue& queue, gpr_timespec latest_end, bool* ok) {
  void* tag = nullptr;
  Cancellation* const cancellation = of_this_thread;
  if (cancellation == nullptr) return queue.AsyncNext(&tag, ok, latest_end) == grpc::CompletionQueue::GOT_EVENT;
  Cancellation::Step step = {.context = &context, .queue = &queue};
  {
    const std::lock_guard<std::mutex> lock(cancellation->mutex_);
    cancellation->step_ = &step;
    if (cancellation->is_cancelled_) step.Hurry();
  }
  const bool has_come = queue.AsyncNext(&tag, ok, latest_end) == grpc::CompletionQueue::GOT_EVENT && tag != &step.late;
  {
    const std::lock_guard<std::mutex> lock(cancellation->mutex_);
    cancellation->step_ = nullptr;
  }
  if (has_come && step.is_hurried) {
    // An alarm that is called off comes at once. The queue must not keep it: the next step would be taken for it.
    step.late.Cancel();
    bool is_over = false;
    queue.Next(&tag, &is_over);
  }
  return has_come;
}

bool IsCancelled() {
  Cancellation* const cancellation = of_this_thread;
  if (cancellation == nullptr) return false;
  const std::lock_guard<std::mutex> lock(cancellation->mutex_);
  return cancellation->is_cancelled_;
}

bool PauseFor(absl::Duration pause) {
  Cancellation* const cancellation = of_this_thread;
  if (cancellation == nullptr) {
    absl::SleepFor(pause);
    return true;
  }
  std::unique_lock<std::mutex> lock(cancellation->mutex_);
  return !cancellation->cancelled_.wait_until(lock, ToSteadyClock(SteadyNow() + pause),
                                              [cancellation] { return cancellation->is_cancelled_; });
}

}  // namespace tensord::client
