#include "tensord/pending_answer.h"

#include <memory>
#include <utility>

#include "clients/cpp/calls/arrival.h"

namespace tensord::client {

PendingAnswer::~PendingAnswer() {
  if (arrival_ != nullptr) arrival_->Drop();
}

bool PendingAnswer::WaitUntil(absl::Time deadline) { return arrival_->WaitUntil(deadline); }

absl::StatusOr<ExecuteAnswer> PendingAnswer::Wait() { return arrival_->Wait(); }

void PendingAnswer::Then(std::function<void(const absl::StatusOr<ExecuteAnswer>&)> callback) {
  const std::shared_ptr<Arrival> arrival = arrival_;  // a callback may destroy this object
  arrival->Then(std::move(callback));
}

}  // namespace tensord::client
