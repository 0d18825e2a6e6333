#include "tensord/pending_answer.h"

#include <utility>

#include "clients/cpp/calls/arrival.h"

namespace tensord::client {

PendingAnswer::~PendingAnswer() {
  if (arrival_ != nullptr) arrival_->Drop();
}

bool PendingAnswer::WaitUntil(absl::Time deadline) { return arrival_->WaitUntil(deadline); }

absl::StatusOr<ExecuteAnswer> PendingAnswer::Wait() { return arrival_->Wait(); }

void PendingAnswer::Then(std::function<void(const absl::StatusOr<ExecuteAnswer>&)> callback) {
  arrival_->Then(std::move(callback));
}

}  // namespace tensord::client
