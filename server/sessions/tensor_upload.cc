#include "server/sessions/tensor_upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/names.h"
#include "server/sessions/session.h"

namespace tensord::server {

TensorUpload& TensorUpload::operator=(TensorUpload&& other) noexcept {
  if (this == &other) return *this;
  Return();
  session_ = std::move(other.session_);
  handle_ = std::move(other.handle_);
  slot_ = std::exchange(other.slot_, nullptr);
  memory_ = std::move(other.memory_);
  buffer_ = std::move(other.buffer_);
  backend_ = other.backend_;
  bytes_ = std::exchange(other.bytes_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  arrived_ = std::exchange(other.arrived_, 0);
  return *this;
}

void TensorUpload::SetMemory(std::shared_ptr<ResidentMemory> memory, std::shared_ptr<Buffer> buffer, Backend* backend) {
  memory_ = std::move(memory);
  buffer_ = std::move(buffer);
  backend_ = backend;
  bytes_ = backend->Describe().computes_in_host_memory ? static_cast<char*>(buffer_->address()) : nullptr;
}

void TensorUpload::Rewind(int64_t arrived) {
  arrived_ = arrived;
  slot_->SetArrived(arrived);
}

void TensorUpload::Advance(int64_t bytes) {
  arrived_ += bytes;
  slot_->SetArrived(arrived_);
}

absl::Status TensorUpload::Commit() {
  if (arrived_ != size_bytes_) {
    return Refuse(Refusal::kHandleIncomplete,
                  absl::StrCat("\"", PrintableName(handle_), "\" has ", arrived_, " of ", size_bytes_, " bytes"));
  }
  RETURN_IF_ERROR(session_->FinishUpload(handle_, slot_));
  slot_ = nullptr;
  memory_ = nullptr;
  buffer_ = nullptr;
  return absl::OkStatus();
}

void TensorUpload::Drop() {
  if (slot_ == nullptr) return;
  session_->Forget(handle_, slot_);
  slot_ = nullptr;
  memory_ = nullptr;
  buffer_ = nullptr;
}

void TensorUpload::Return() {
  if (slot_ != nullptr) slot_->ReturnWriter();
  slot_ = nullptr;
}

}  // namespace tensord::server
