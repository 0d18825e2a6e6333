#include "server/sessions/handle_claim.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "engine/base/refusal.h"
#include "server/sessions/poisoned_handle.h"
#include "server/sessions/session.h"

namespace tensord::server {

HandleClaim::HandleClaim(HandleClaim&& other) noexcept { *this = std::move(other); }

HandleClaim& HandleClaim::operator=(HandleClaim&& other) noexcept {
  if (this == &other) return *this;
  GiveUp();
  session_ = std::exchange(other.session_, nullptr);
  uses_ = std::exchange(other.uses_, {});
  keeps_ = std::exchange(other.keeps_, {});
  poisons_ = other.poisons_;
  started_ = other.started_;
  first_cause_ = std::move(other.first_cause_);
  return *this;
}

void HandleClaim::GiveUp() {
  if (session_ == nullptr) return;
  for (const Waiter& waiter : Fail(Refuse(Refusal::kCancelled, "the request was given up"))) waiter();
}

bool HandleClaim::ReadyOrElse(Waiter then) {
  if (uses_.empty()) return true;
  // Counts the slots, and this very loop: `then` may be called, and the claim be gone, as soon as both are done.
  const auto left = std::make_shared<std::atomic<size_t>>(uses_.size() + 1);
  const auto shared = std::make_shared<Waiter>(std::move(then));
  const Waiter one = [left, shared] {
    if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) (*shared)();
  };
  size_t done = 1;
  for (Use& use : uses_) {
    use.waiting = use.slot->Await(one);
    if (use.waiting == 0) ++done;
  }
  return left->fetch_sub(done, std::memory_order_acq_rel) == done;
}

absl::Status HandleClaim::CheckReady() {
  for (const Use& use : uses_) {
    if (use.slot->state() != TensorSlot::State::kFailed) continue;
    first_cause_ = use.slot->cause();
    return PoisonedHandle(use.handle, first_cause_);
  }
  return absl::OkStatus();
}

ResidentType HandleClaim::TypeOf(size_t use) const { return uses_[use].slot->type(); }

absl::StatusOr<ResidentTensor> HandleClaim::Read(size_t use) const {
  const Use& read = uses_[use];
  std::optional<ResidentTensor> tensor = read.slot->Read();
  if (!tensor.has_value()) return PoisonedHandle(read.handle, read.slot->cause());
  return *std::move(tensor);
}

absl::StatusOr<std::shared_ptr<ResidentMemory>> HandleClaim::MemoryOf(size_t use) const {
  const Use& read = uses_[use];
  std::shared_ptr<ResidentMemory> memory = read.slot->memory();
  if (memory == nullptr) return PoisonedHandle(read.handle, read.slot->cause());
  return memory;
}

bool HandleClaim::IsWritable(size_t use) const { return uses_[use].donated && uses_[use].slot->IsUsedByOneAlone(); }

absl::Status HandleClaim::Fulfil(std::vector<Kept> kept, Waiters* waiters) {
  if (session_ == nullptr) return absl::OkStatus();
  if (session_->closed()) {
    const absl::Status ended =
        Refuse(Refusal::kSessionUnknown, "the session ended while the program ran; open another");
    *waiters = Fail(ended);
    return ended;
  }
  // Before anybody can read the results: one may lie in the place of a donated tensor.
  EndUses();
  for (size_t i = 0; i < keeps_.size(); ++i) {
    Waiters of_slot = keeps_[i].slot->Fulfil(std::move(kept[i].type), std::move(kept[i].memory));
    waiters->insert(waiters->end(), std::make_move_iterator(of_slot.begin()), std::make_move_iterator(of_slot.end()));
  }
  keeps_.clear();
  session_ = nullptr;
  return absl::OkStatus();
}

Waiters HandleClaim::Fail(const absl::Status& cause) {
  Waiters waiters;
  if (session_ == nullptr) return waiters;
  const absl::Status& first_cause = first_cause_.ok() ? cause : first_cause_;
  absl::flat_hash_map<absl::string_view, TensorSlotPtr> successors;
  for (const Keep& keep : keeps_) successors.emplace(keep.handle, keep.slot);
  for (const Use& use : uses_) {
    if (!use.donated || started_) continue;
    const auto successor = successors.find(use.handle);
    if (successor == successors.end()) {
      session_->Restore(use.handle, use.slot, nullptr);
    } else if (!poisons_) {
      session_->Restore(use.handle, use.slot, successor->second);
    }
  }
  for (const Keep& keep : keeps_) {
    if (!poisons_) session_->Forget(keep.handle, keep.slot);
  }
  for (const Keep& keep : keeps_) {
    Waiters of_slot = keep.slot->Fail(first_cause, poisons_ ? session_->ChargeHandle() : MemoryCharge());
    waiters.insert(waiters.end(), std::make_move_iterator(of_slot.begin()), std::make_move_iterator(of_slot.end()));
  }
  EndUses();
  keeps_.clear();
  session_ = nullptr;
  return waiters;
}

void HandleClaim::EndUses() {
  for (const Use& use : uses_) {
    if (use.waiting != 0) use.slot->Leave(use.waiting);
    if (use.donated) session_->UseUp(use.handle, use.slot);
    use.slot->EndUse();
  }
  uses_.clear();
}

}  // namespace tensord::server
