#include "server/sessions/session.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/names.h"
#include "server/sessions/poisoned_handle.h"

namespace tensord::server {
namespace {

constexpr int64_t kMaxHandleBytes = 256;

absl::Status CheckHandle(absl::string_view handle) {
  if (handle.empty()) return Refuse(Refusal::kNameInvalid, "a handle is empty; choose one, unique in the session");
  return CheckName(handle, kMaxHandleBytes, /*reference=*/false);
}

absl::Status UnknownHandle(absl::string_view handle) {
  return Refuse(Refusal::kHandleUnknown,
                absl::StrCat("the session has no tensor \"", PrintableName(handle), "\"; upload or compute it again"));
}

absl::Status IncompleteHandle(absl::string_view handle, absl::string_view what) {
  return Refuse(Refusal::kHandleIncomplete, absl::StrCat("\"", PrintableName(handle), "\" ", what));
}

}  // namespace

Session::Session(Options options)
    : options_(std::move(options)),
      expiry_((options_.clock() + absl::ToChronoNanoseconds(options_.lease)).time_since_epoch().count()) {}

void Session::Renew() {
  expiry_ = (options_.clock() + absl::ToChronoNanoseconds(options_.lease)).time_since_epoch().count();
}

void Session::NamedBy(std::string peer) {
  MutexLock lock(&mutex_);
  named_by_ = std::move(peer);
}

std::string Session::named_by() const {
  MutexLock lock(&mutex_);
  return named_by_;
}

Session::Time Session::expiry() const { return Time(Time::duration(expiry_.load())); }

void Session::Release() {
  Renew();
  --holds_;
}

Session::Counts Session::counts() const {
  MutexLock lock(&mutex_);
  Counts counts{.handles = static_cast<int64_t>(table_.size()), .bytes = 0};
  for (const auto& [handle, slot] : table_) {
    if (slot->state() == TensorSlot::State::kReady || slot->state() == TensorSlot::State::kUploading) {
      counts.bytes += slot->type().num_bytes();
    }
  }
  return counts;
}

MemoryCharge Session::ChargeHandle() const { return options_.ledger->ChargeAnyway(tenant(), "host", kHandleBytes); }

absl::Status Session::CheckOpen() const {
  if (!closed_) return absl::OkStatus();
  return Refuse(Refusal::kSessionUnknown, "the session has ended; open another");
}

absl::StatusOr<TensorSlotPtr> Session::Lookup(absl::string_view handle) const {
  const auto found = table_.find(handle);
  if (found == table_.end()) return UnknownHandle(handle);
  LoseIfGone(found->second);
  return found->second;
}

void Session::LoseIfGone(const TensorSlotPtr& slot) const {
  if (!slot->IsLost()) return;
  const absl::Status cause = Refuse(Refusal::kDeviceLost, "its device has failed, and what it held is gone");
  if (slot->Lose(cause, ChargeHandle())) options_.ledger->CountEnds(TensorEnd::kDeviceLost, 1);
}

void Session::LoseTensors() {
  MutexLock lock(&mutex_);
  for (const auto& [handle, slot] : table_) LoseIfGone(slot);
  for (const auto& [handle, slots] : given_) {
    for (const TensorSlotPtr& slot : slots) LoseIfGone(slot);
  }
}

absl::Status Session::CheckFree(const std::string& handle) const {
  RETURN_IF_ERROR(CheckHandle(handle));
  const auto found = table_.find(handle);
  if (found == table_.end()) return absl::OkStatus();
  LoseIfGone(found->second);
  if (found->second->state() == TensorSlot::State::kFailed) return PoisonedHandle(handle, found->second->cause());
  return Refuse(Refusal::kHandleDuplicate, absl::StrCat("the session has a tensor \"", PrintableName(handle),
                                                        "\" already; delete it first or choose another handle"));
}

absl::Status Session::CheckRoom(int64_t more) const {
  const int64_t handles = static_cast<int64_t>(table_.size());
  const int64_t most = *options_.max_handles;
  if (more <= most - handles) return absl::OkStatus();
  return RefuseLimit("sessions.handles", most, handles + more, "handles of the session");
}

absl::StatusOr<ResidentTensor> Session::Find(absl::string_view handle) const {
  TensorSlotPtr slot;
  {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckOpen());
    ASSIGN_OR_RETURN(slot, Lookup(handle));
    // Read under the lock: who takes the name away knows every reader there is.
    if (std::optional<ResidentTensor> tensor = slot->Read()) return *std::move(tensor);
  }
  if (slot->state() == TensorSlot::State::kFailed) return PoisonedHandle(handle, slot->cause());
  return IncompleteHandle(handle, "is not there yet; wait until its upload or its request is over");
}

std::vector<std::string> Session::Delete(absl::Span<const std::string> handles) {
  std::vector<std::string> missing;
  std::vector<TensorSlotPtr> removed;  // their memory goes when the lock is free
  MutexLock lock(&mutex_);
  for (const std::string& handle : handles) {
    const auto given = given_.find(handle);
    if (given != given_.end()) {
      removed.insert(removed.end(), given->second.begin(), given->second.end());
      given_.erase(given);
    }
    const auto found = table_.find(handle);
    if (found == table_.end()) {
      missing.push_back(handle);
      continue;
    }
    removed.push_back(std::move(found->second));
    table_.erase(found);
  }
  CountEnds(TensorEnd::kDeleted, removed);
  return missing;
}

void Session::CountEnds(TensorEnd end, absl::Span<const TensorSlotPtr> slots) const {
  const int64_t tensors = std::count_if(slots.begin(), slots.end(), [](const TensorSlotPtr& slot) {
    const TensorSlot::State state = slot->state();
    return state == TensorSlot::State::kReady || state == TensorSlot::State::kUploading;
  });
  if (tensors > 0) options_.ledger->CountEnds(end, tensors);
}

absl::StatusOr<HandleClaim> Session::Claim(const HandleRequest& request) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckOpen());
  absl::StatusOr<HandleClaim> claim = ClaimLocked(request);
  if (!claim.ok() && request.poisons) PoisonLocked(request, claim.status());
  return claim;
}

void Session::Poison(const HandleRequest& request, const absl::Status& cause) {
  MutexLock lock(&mutex_);
  if (!closed_) PoisonLocked(request, cause);
}

absl::StatusOr<HandleClaim> Session::ClaimLocked(const HandleRequest& request) {
  std::vector<HandleClaim::Use> uses;
  absl::flat_hash_set<absl::string_view> donated;
  for (const HandleUse& use : request.uses) {
    ASSIGN_OR_RETURN(TensorSlotPtr slot, Lookup(use.handle));
    if (slot->state() == TensorSlot::State::kUploading) {
      return IncompleteHandle(use.handle, "is still being uploaded; finish that first");
    }
    if (use.donated) {
      if (!donated.insert(use.handle).second) return UnknownHandle(use.handle);
    }
    uses.push_back({.handle = use.handle, .slot = std::move(slot), .donated = use.donated});
  }
  absl::flat_hash_set<absl::string_view> kept;
  for (const std::string& handle : request.keeps) {
    if (!kept.insert(handle).second) {
      return Refuse(Refusal::kHandleDuplicate,
                    absl::StrCat("two results of the request have the handle \"", PrintableName(handle), "\""));
    }
    // A handle that the request gives away leaves its name to a result.
    if (!donated.contains(handle)) RETURN_IF_ERROR(CheckFree(handle));
  }
  RETURN_IF_ERROR(CheckRoom(static_cast<int64_t>(request.keeps.size()) - static_cast<int64_t>(donated.size())));

  HandleClaim claim;
  claim.session_ = shared_from_this();
  claim.poisons_ = request.poisons;
  claim.uses_ = std::move(uses);
  for (const HandleClaim::Use& use : claim.uses_) {
    use.slot->AddUse();
    if (!use.donated) continue;
    table_.erase(use.handle);
    given_[use.handle].push_back(use.slot);
  }
  for (const std::string& handle : request.keeps) {
    claim.keeps_.push_back({.handle = handle, .slot = TensorSlot::Promise()});
    table_.emplace(handle, claim.keeps_.back().slot);
  }
  return claim;
}

void Session::PoisonLocked(const HandleRequest& request, const absl::Status& cause) {
  absl::flat_hash_set<absl::string_view> donated;
  for (const HandleUse& use : request.uses) {
    if (use.donated) donated.insert(use.handle);
  }
  for (const std::string& handle : request.keeps) {
    // A client that was sent the next state under the name of the last one must not find the last one.
    const bool replaces = donated.contains(handle) && table_.contains(handle);
    if (!replaces && (!CheckFree(handle).ok() || !CheckRoom(1).ok())) continue;
    const TensorSlotPtr slot = TensorSlot::Promise();
    slot->Fail(cause, ChargeHandle());
    TensorSlotPtr& place = table_[handle];
    if (place != nullptr) CountEnds(TensorEnd::kPoisoned, {place});
    place = slot;
  }
}

absl::StatusOr<TensorUpload> Session::StartUpload(const std::string& handle, const ResidentType& type, Backend* backend,
                                                  uint64_t id) {
  TensorUpload upload;
  upload.session_ = shared_from_this();
  upload.handle_ = handle;
  upload.size_bytes_ = type.num_bytes();
  {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckOpen());
    const auto found = table_.find(handle);
    if (found != table_.end()) LoseIfGone(found->second);
    if (found != table_.end() && found->second->state() == TensorSlot::State::kUploading) {
      const ResidentType begun = found->second->type();
      if (begun.device != type.device || begun.type != type.type || begun.order != type.order) {
        return Refuse(Refusal::kHandleDuplicate, absl::StrCat("\"", PrintableName(handle), "\" is being uploaded as ",
                                                              ToString(begun.type), " in another form than this"));
      }
      const auto taken = found->second->TakeWriter(id);
      if (!taken.has_value()) return IncompleteHandle(handle, "is being uploaded by another call");
      upload.slot_ = found->second;
      upload.SetMemory(taken->memory, taken->buffer, backend);
      upload.arrived_ = taken->arrived;
      return upload;
    }
    RETURN_IF_ERROR(CheckFree(handle));
    RETURN_IF_ERROR(CheckRoom(1));
    upload.slot_ = TensorSlot::ForUpload(type, id);
    table_.emplace(handle, upload.slot_);
  }
  // Not under the lock: the device may take its time.
  const auto allocate = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(MemoryCharge charge,
                     options_.ledger->Charge(tenant(), type.device, ChargedBytes(upload.size_bytes_)));
    ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, backend->Allocate(upload.size_bytes_));
    upload.SetMemory(std::make_shared<ResidentMemory>(buffer, std::move(charge)), buffer, backend);
    upload.slot_->SetMemory(upload.memory_, buffer);
    return absl::OkStatus();
  };
  const absl::Status allocated = allocate();
  if (allocated.ok()) return upload;
  upload.Drop();
  return allocated;
}

absl::StatusOr<int64_t> Session::ArrivedBytes(absl::string_view handle) const {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckOpen());
  ASSIGN_OR_RETURN(const TensorSlotPtr slot, Lookup(handle));
  switch (slot->state()) {
    case TensorSlot::State::kUploading:
      return slot->arrived();
    case TensorSlot::State::kReady:
      return slot->type().num_bytes();
    case TensorSlot::State::kFailed:
      return PoisonedHandle(handle, slot->cause());
    case TensorSlot::State::kPromised:
      break;
  }
  return IncompleteHandle(handle, "is being computed");
}

absl::Status Session::FinishUpload(absl::string_view handle, const TensorSlotPtr& slot) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckOpen());
  const auto found = table_.find(handle);
  if (found == table_.end() || found->second != slot) return UnknownHandle(handle);
  LoseIfGone(slot);
  if (slot->state() == TensorSlot::State::kFailed) return PoisonedHandle(handle, slot->cause());
  slot->FinishUpload();
  return absl::OkStatus();
}

void Session::Forget(absl::string_view handle, const TensorSlotPtr& slot) {
  MutexLock lock(&mutex_);
  const auto found = table_.find(handle);
  if (found == table_.end() || found->second != slot) return;
  table_.erase(found);
  CountEnds(TensorEnd::kUploadFailed, {slot});
}

bool Session::TakeGivenLocked(const std::string& handle, const TensorSlotPtr& slot) {
  const auto found = given_.find(handle);
  if (found == given_.end() || std::erase(found->second, slot) == 0) return false;
  if (found->second.empty()) given_.erase(found);
  return true;
}

void Session::UseUp(const std::string& handle, const TensorSlotPtr& slot) {
  MutexLock lock(&mutex_);
  if (TakeGivenLocked(handle, slot)) CountEnds(TensorEnd::kDonated, {slot});
}

void Session::Restore(const std::string& handle, const TensorSlotPtr& slot, const TensorSlotPtr& instead_of) {
  MutexLock lock(&mutex_);
  if (!TakeGivenLocked(handle, slot)) return;
  const auto [place, is_free] = table_.emplace(handle, slot);
  if (is_free) return;
  if (place->second == instead_of) {
    place->second = slot;
  } else {
    CountEnds(TensorEnd::kDonated, {slot});
  }
}

void Session::Close(TensorEnd end) {
  std::vector<TensorSlotPtr> slots;  // go when the lock is free
  MutexLock lock(&mutex_);
  closed_ = true;
  for (auto& [handle, slot] : table_) slots.push_back(std::move(slot));
  for (const auto& [handle, given] : given_) slots.insert(slots.end(), given.begin(), given.end());
  table_.clear();
  given_.clear();
  CountEnds(end, slots);
}

bool Session::closed() const {
  MutexLock lock(&mutex_);
  return closed_;
}

}  // namespace tensord::server
