#include "clients/cpp/calls/started_calls.h"

#include <system_error>

#include "absl/strings/str_cat.h"

namespace tensord::client {

std::list<std::shared_ptr<StartedCalls::Running>> StartedCalls::TakeDone(Shared& shared) {
  std::list<std::shared_ptr<Running>> done;
  for (auto call = shared.running.begin(); call != shared.running.end();) {
    const auto here = call++;
    const bool is_own = (*here)->thread.get_id() == std::this_thread::get_id();
    if ((*here)->is_done && !is_own) done.splice(done.end(), shared.running, here);
  }
  return done;
}

absl::Status StartedCalls::Run(std::shared_ptr<Cancellation> cancellation, std::function<void()> call,
                               std::function<void()> then) {
  std::list<std::shared_ptr<Running>> done;
  absl::Status started;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    done = TakeDone(*shared_);
    started = StartLocked(std::move(cancellation), std::move(call), std::move(then));
  }
  for (const std::shared_ptr<Running>& call_done : done) call_done->thread.join();
  return started;
}

absl::Status StartedCalls::StartLocked(std::shared_ptr<Cancellation> cancellation, std::function<void()> call,
                                       std::function<void()> then) {
  if (shared_->is_over) return absl::CancelledError("the client is being destroyed");
  if (shared_->under_way >= kMost) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a client has at most ", kMost, " started calls at a time; wait for one of them, or use a pipeline"));
  }
  auto running = std::make_shared<Running>(Running{.cancellation = std::move(cancellation)});
  try {
    running->thread =
        std::thread([shared = shared_, running, call = std::move(call), then = std::move(then)]() mutable {
          call();
          call = nullptr;
          {
            const std::lock_guard<std::mutex> ended(shared->mutex);
            --shared->under_way;
          }
          then();
          then = nullptr;
          const std::lock_guard<std::mutex> ended(shared->mutex);
          running->is_done = true;
        });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("no thread for a call: ", error.what()));
  }
  ++shared_->under_way;
  shared_->running.push_back(std::move(running));
  return absl::OkStatus();
}

void StartedCalls::End() {
  std::list<std::shared_ptr<Running>> left;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->is_over = true;
    left.splice(left.begin(), shared_->running);
    for (const std::shared_ptr<Running>& call : left) call->cancellation->Cancel();
  }
  for (const std::shared_ptr<Running>& call : left) {
    if (call->thread.get_id() == std::this_thread::get_id()) {
      call->thread.detach();  // a callback destroys the client
    } else {
      call->thread.join();
    }
  }
}

}  // namespace tensord::client
