#include "server/sessions/resident_tensor.h"

#include <utility>

namespace tensord::server {

ResidentMemory::ResidentMemory(std::shared_ptr<const void> bytes, MemoryCharge charge)
    : bytes_(std::move(bytes)), charge_(std::move(charge)), ledger_(charge_.ledger()), device_(charge_.device()) {
  if (ledger_ != nullptr) ledger_->CountTensor(device_, 1);
}

ResidentMemory::~ResidentMemory() {
  if (ledger_ != nullptr) ledger_->CountTensor(device_, -1);
}

std::shared_ptr<const void> ResidentMemory::Read(const std::shared_ptr<ResidentMemory>& memory) {
  memory->readers_.fetch_add(1, std::memory_order_relaxed);
  return std::shared_ptr<const void>(memory->bytes_.get(), [memory](const void*) {
    // Pairs with IsSoleOwner: a pointer's own count would not say that the reads are over.
    memory->readers_.fetch_sub(1, std::memory_order_release);
  });
}

bool ResidentMemory::IsSoleOwner(const std::shared_ptr<ResidentMemory>& memory) {
  return memory.use_count() == 1 && memory->readers_.load(std::memory_order_acquire) == 0;
}

}  // namespace tensord::server
