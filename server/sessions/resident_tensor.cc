#include "server/sessions/resident_tensor.h"

#include <algorithm>
#include <utility>

namespace tensord::server {

ResidentMemory::ResidentMemory(BufferPtr buffer, MemoryCharge charge)
    : buffer_(std::move(buffer)),
      own_bytes_(charge.bytes()),
      ledger_(charge.ledger()),
      tenant_(charge.tenant()),
      device_(charge.device()),
      charge_(std::move(charge)) {
  if (ledger_ != nullptr) ledger_->CountTensor(device_, 1);
}

ResidentMemory::~ResidentMemory() {
  if (ledger_ != nullptr) ledger_->CountTensor(device_, -1);
}

int64_t ResidentMemory::charged_bytes() const {
  MutexLock lock(&mutex_);
  return charge_.bytes();
}

MemoryCharge ResidentMemory::TakeCharge() {
  MutexLock lock(&mutex_);
  return charge_.Take(charge_.bytes());
}

absl::Status ResidentMemory::CheckAnotherName() const {
  int64_t more = 0;
  {
    MutexLock lock(&mutex_);
    more = (names_ + 1) * kHandleBytes - charge_.bytes();
  }
  if (ledger_ == nullptr || more <= 0) return absl::OkStatus();
  return ledger_->Charge(tenant_, device_, more).status();
}

void ResidentMemory::AddName() {
  MutexLock lock(&mutex_);
  const int64_t more = ++names_ * kHandleBytes - charge_.bytes();
  if (ledger_ != nullptr && names_ > 1 && more > 0) charge_.Add(ledger_->ChargeAnyway(tenant_, device_, more));
}

void ResidentMemory::DropName() {
  MemoryCharge released;
  MutexLock lock(&mutex_);
  const int64_t enough = std::max(own_bytes_, --names_ * kHandleBytes);
  if (charge_.bytes() > enough) released = charge_.Take(charge_.bytes() - enough);
}

BufferPtr ResidentMemory::Read(const std::shared_ptr<ResidentMemory>& memory) {
  const Buffer& buffer = *memory->buffer_;
  auto reader = std::make_shared<const Buffer>(
      buffer.address(), buffer.size_bytes(),
      [memory](void*, int64_t) {
        // Pairs with IsSoleOwner: a pointer's own count would not say that the reads are over.
        memory->readers_.fetch_sub(1, std::memory_order_release);
      },
      buffer.loss());
  memory->readers_.fetch_add(1, std::memory_order_relaxed);
  return reader;
}

bool ResidentMemory::IsSoleOwner(const std::shared_ptr<ResidentMemory>& memory) {
  return memory.use_count() == 1 && memory->readers_.load(std::memory_order_acquire) == 0;
}

}  // namespace tensord::server
