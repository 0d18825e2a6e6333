#include "clients/cpp/calls/started_calls.h"

#include <system_error>

#include "absl/strings/str_cat.h"

namespace tensord::client {

void StartedCalls::Reap() {
  for (auto call = running_.begin(); call != running_.end();) {
    if (!call->is_done) {
      ++call;
      continue;
    }
    call->thread.join();  // ends without the lock, which it has given back for the last time
    call = running_.erase(call);
  }
}

absl::Status StartedCalls::Run(std::shared_ptr<Cancellation> cancellation, std::function<void()> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_over_) return absl::CancelledError("the client is being destroyed");
  Reap();
  if (running_.size() >= kMost) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a client has at most ", kMost, " started calls at a time; wait for one of them, or use a pipeline"));
  }
  Running& call = running_.emplace_back(Running{.cancellation = std::move(cancellation)});
  try {
    call.thread = std::thread([this, &call, work = std::move(work)]() mutable {
      work();
      work = nullptr;
      const std::lock_guard<std::mutex> done(mutex_);
      call.is_done = true;
    });
  } catch (const std::system_error& error) {
    running_.pop_back();
    return absl::ResourceExhaustedError(absl::StrCat("no thread for a call: ", error.what()));
  }
  return absl::OkStatus();
}

void StartedCalls::End() {
  std::list<Running> left;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
    left.splice(left.begin(), running_);  // the nodes stay where they are
    for (const Running& call : left) call.cancellation->Cancel();
  }
  for (Running& call : left) call.thread.join();
}

}  // namespace tensord::client
