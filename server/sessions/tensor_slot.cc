#include "server/sessions/tensor_slot.h"

#include <atomic>
#include <utility>

namespace tensord::server {
namespace {

uint64_t NextVersion() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

TensorSlot::TensorSlot(State state, ResidentType type, uint64_t upload_id)
    : version_(NextVersion()), state_(state), type_(std::move(type)), upload_{.id = upload_id} {}

TensorSlot::~TensorSlot() {
  const std::shared_ptr<ResidentMemory>& named = memory_ != nullptr ? memory_ : upload_.memory;
  if (named != nullptr) named->DropName();
}

TensorSlot::State TensorSlot::state() const {
  MutexLock lock(&mutex_);
  return state_;
}

ResidentType TensorSlot::type() const {
  MutexLock lock(&mutex_);
  return type_;
}

absl::Status TensorSlot::cause() const {
  MutexLock lock(&mutex_);
  return cause_;
}

std::optional<ResidentTensor> TensorSlot::Read() const {
  MutexLock lock(&mutex_);
  if (state_ != State::kReady) return std::nullopt;
  return ResidentTensor{.type = type_, .buffer = ResidentMemory::Read(memory_), .version = version_};
}

std::shared_ptr<ResidentMemory> TensorSlot::memory() const {
  MutexLock lock(&mutex_);
  return state_ == State::kReady ? memory_ : nullptr;
}

void TensorSlot::AddUse() {
  MutexLock lock(&mutex_);
  ++uses_;
}

void TensorSlot::EndUse() {
  MutexLock lock(&mutex_);
  --uses_;
}

bool TensorSlot::IsUsedByOneAlone() const {
  MutexLock lock(&mutex_);
  return state_ == State::kReady && uses_ == 1 && ResidentMemory::IsSoleOwner(memory_);
}

uint64_t TensorSlot::Await(Waiter waiter) {
  MutexLock lock(&mutex_);
  return state_ == State::kPromised ? waiting_.Join(std::move(waiter)) : 0;
}

void TensorSlot::Leave(uint64_t waiter) {
  std::optional<Waiter> gone;  // without the lock
  MutexLock lock(&mutex_);
  gone = waiting_.Leave(waiter);
}

Waiters TensorSlot::Settle(State state) {
  state_ = state;
  return waiting_.TakeAll();
}

Waiters TensorSlot::Fulfil(ResidentType type, std::shared_ptr<ResidentMemory> memory) {
  MutexLock lock(&mutex_);
  type_ = std::move(type);
  memory_ = std::move(memory);
  memory_->AddName();
  return Settle(State::kReady);
}

Waiters TensorSlot::Fail(absl::Status cause, MemoryCharge charge) {
  MutexLock lock(&mutex_);
  cause_ = std::move(cause);
  failed_charge_ = std::move(charge);
  return Settle(State::kFailed);
}

bool TensorSlot::IsLostLocked() const {
  const std::shared_ptr<ResidentMemory>& memory = state_ == State::kReady ? memory_ : upload_.memory;
  return (state_ == State::kReady || state_ == State::kUploading) && memory != nullptr && memory->is_lost();
}

bool TensorSlot::IsLost() const {
  MutexLock lock(&mutex_);
  return IsLostLocked();
}

bool TensorSlot::Lose(absl::Status cause, MemoryCharge charge) {
  std::shared_ptr<ResidentMemory> gone;  // without the lock, like the next
  Upload upload;
  MutexLock lock(&mutex_);
  if (!IsLostLocked()) return false;
  gone = std::move(memory_);
  std::swap(upload, upload_);
  (gone != nullptr ? gone : upload.memory)->DropName();
  cause_ = std::move(cause);
  failed_charge_ = std::move(charge);
  state_ = State::kFailed;
  return true;
}

void TensorSlot::SetMemory(std::shared_ptr<ResidentMemory> memory, std::shared_ptr<Buffer> buffer) {
  MutexLock lock(&mutex_);
  memory->AddName();
  upload_.memory = std::move(memory);
  upload_.buffer = std::move(buffer);
}

std::optional<TensorSlot::Upload> TensorSlot::TakeWriter(uint64_t id) {
  MutexLock lock(&mutex_);
  if (state_ != State::kUploading || upload_.has_writer) return std::nullopt;
  upload_.has_writer = true;
  if (id != 0 && id != upload_.id) {
    upload_.id = id;
    upload_.arrived = 0;
  }
  return upload_;
}

void TensorSlot::ReturnWriter() {
  MutexLock lock(&mutex_);
  upload_.has_writer = false;
}

void TensorSlot::SetArrived(int64_t bytes) {
  MutexLock lock(&mutex_);
  upload_.arrived = bytes;
}

int64_t TensorSlot::arrived() const {
  MutexLock lock(&mutex_);
  return upload_.arrived;
}

void TensorSlot::FinishUpload() {
  MutexLock lock(&mutex_);
  if (state_ != State::kUploading) return;  // lost meanwhile
  memory_ = std::move(upload_.memory);
  upload_ = Upload{};
  state_ = State::kReady;
}

}  // namespace tensord::server
