#include "clients/cpp/arrival.h"

#include <utility>

#include "clients/cpp/execute_wire.h"

namespace tensord::client {

void Arrival::Deliver(grpc::ByteBuffer* response) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_dropped_) return;
  response_.emplace().Swap(response);
  arrived_.notify_all();
}

void Arrival::Fail(absl::Status failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_dropped_) unseen_->Add(id_, failure);
  answer_ = std::move(failure);
  arrived_.notify_all();
}

bool Arrival::WaitUntil(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_there = [this] { return response_.has_value() || answer_.has_value(); };
  if (deadline != absl::InfiniteFuture()) return arrived_.wait_until(lock, absl::ToChronoTime(deadline), is_there);
  arrived_.wait(lock, is_there);
  return true;
}

absl::StatusOr<ExecuteAnswer> Arrival::Wait() {
  WaitUntil(absl::InfiniteFuture());
  const std::lock_guard<std::mutex> lock(mutex_);
  is_seen_ = true;
  if (!answer_.has_value()) {
    answer_ = DecodeExecuteResponse(*response_, order_, plans_);
    response_.reset();
  }
  return *answer_;
}

void Arrival::Drop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_dropped_ = true;
  if (!is_seen_ && answer_.has_value() && !answer_->ok()) unseen_->Add(id_, answer_->status());
  response_.reset();
}

}  // namespace tensord::client
