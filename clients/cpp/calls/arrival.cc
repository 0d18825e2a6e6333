#include "clients/cpp/calls/arrival.h"

#include <utility>

#include "clients/cpp/connection/steady_time.h"
#include "clients/cpp/wire/execute_wire.h"

namespace tensord::client {

void Arrival::Deliver(grpc::ByteBuffer* response) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (is_dropped_ && callbacks_.empty()) {
    sharing_.call.reset();
    return;
  }
  if (sharing_.call != nullptr) sharing_.call->ReleaseArguments();
  response_.emplace().Swap(response);
  arrived_.notify_all();
  CallBack(std::move(lock));
}

void Arrival::Fail(absl::Status failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (is_dropped_ && callbacks_.empty()) unseen_->Add(id_, failure);
  if (sharing_.call != nullptr) sharing_.call->Failed(failure);
  sharing_.call.reset();
  answer_ = std::move(failure);
  arrived_.notify_all();
  CallBack(std::move(lock));
}

bool Arrival::WaitUntil(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_there = [this] { return IsThere(); };
  if (deadline != absl::InfiniteFuture()) {
    return arrived_.wait_until(lock, ToSteadyClock(SteadyTimeOf(deadline)), is_there);
  }
  arrived_.wait(lock, is_there);
  return true;
}

absl::StatusOr<ExecuteAnswer> Arrival::Wait() {
  WaitUntil(absl::InfiniteFuture());
  const std::lock_guard<std::mutex> lock(mutex_);
  return Read();
}

void Arrival::Then(Callback callback) {
  std::unique_lock<std::mutex> lock(mutex_);
  callbacks_.Add([this, callback = std::move(callback)] { callback(*answer_); });
  if (IsThere()) CallBack(std::move(lock));
}

void Arrival::CallBack(std::unique_lock<std::mutex> lock) {
  if (callbacks_.empty()) return;
  Read();
  callbacks_.Call(lock);
}

const absl::StatusOr<ExecuteAnswer>& Arrival::Read() {
  is_seen_ = true;
  if (!answer_.has_value()) {
    const bool is_shared = sharing_.call != nullptr;
    answer_ = DecodeExecuteResponse(*response_, order_, plans_,
                                    is_shared ? sharing_.call->spaces() : absl::Span<const ResultSpace>());
    if (is_shared && answer_->ok()) sharing_.sizes->Learn(sharing_.fingerprint, **answer_);
    sharing_.call.reset();
    response_.reset();
  }
  return *answer_;
}

void Arrival::Drop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_dropped_ = true;
  if (!callbacks_.empty()) return;
  if (!is_seen_ && answer_.has_value() && !answer_->ok()) unseen_->Add(id_, answer_->status());
  if (response_.has_value()) sharing_.call.reset();  // else the server may still work with it
  response_.reset();
}

}  // namespace tensord::client
