#include "clients/cpp/shared_memory/shared_call.h"

#include <cstring>
#include <utility>

#include "clients/cpp/connection/steady_time.h"
#include "tensord/error_detail.h"

namespace tensord::client {

SharedCall::SharedCall(std::shared_ptr<SharedMemory> memory, absl::Span<const Argument> arguments,
                       absl::Span<const size_t> result_bytes, absl::Time deadline)
    : memory_(std::move(memory)) {
  if (memory_ == nullptr || memory_->is_lost()) return;
  const absl::Time now = SteadyNow();
  deadline = now + (deadline - now) / 2;
  places_.resize(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].tensor() == nullptr || arguments[i].tensor()->size_bytes() < kSharedFrom) continue;
    const HostTensor& tensor = *arguments[i].tensor();
    places_[i] = memory_->Find(tensor.bytes(), tensor.size_bytes());
    if (places_[i].has_value()) {
      in_place_.push_back(tensor);
      continue;
    }
    absl::StatusOr<std::shared_ptr<char>> copy = memory_->Allocate(tensor.size_bytes(), TimeOfDay(deadline));
    if (!copy.ok()) continue;
    std::memcpy(copy->get(), tensor.bytes(), tensor.size_bytes());
    places_[i] = memory_->Find(copy->get(), tensor.size_bytes());
    copies_.push_back(*std::move(copy));
  }
  for (size_t i = 0; i < result_bytes.size(); ++i) {
    if (result_bytes[i] < kSharedFrom) continue;
    absl::StatusOr<std::shared_ptr<char>> space = memory_->Allocate(result_bytes[i], TimeOfDay(deadline));
    if (!space.ok()) continue;
    spaces_.resize(i + 1);
    spaces_[i] = {.bytes = *std::move(space), .size_bytes = result_bytes[i]};
  }
}

void SharedCall::SetSpaces(v1::ExecuteRequest* request) const {
  for (size_t i = 0; i < spaces_.size(); ++i) {
    while (request->results_size() <= static_cast<int>(i)) request->add_results();
    if (spaces_[i].bytes == nullptr) continue;
    const std::optional<SharedPlace> place = memory_->Find(spaces_[i].bytes.get(), spaces_[i].size_bytes);
    if (!place.has_value()) continue;
    v1::SharedSpace* space = request->mutable_results(static_cast<int>(i))->mutable_shared();
    space->set_region(place->region);
    space->set_offset(place->offset);
    space->set_byte_count(static_cast<int64_t>(spaces_[i].size_bytes));
  }
}

void SharedCall::ReleaseArguments() {
  copies_.clear();
  in_place_.clear();
}

void SharedCall::Failed(const absl::Status& failure) {
  for (const std::shared_ptr<char>& copy : copies_) memory_->Forget(copy.get());
  for (const ResultSpace& space : spaces_) {
    if (space.bytes != nullptr) memory_->Forget(space.bytes.get());
  }
  if (memory_ != nullptr && ReasonOf(failure) == "REGION_UNKNOWN") memory_->SetLost();  // another server
}

}  // namespace tensord::client
