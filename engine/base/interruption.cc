#include "engine/base/interruption.h"

#include <utility>

#include "engine/base/refusal.h"

namespace tensord {
namespace {

thread_local const std::atomic<bool>* t_interrupted = nullptr;

}  // namespace

Interruptible::Interruptible(const std::atomic<bool>* interrupted)
    : outer_(std::exchange(t_interrupted, interrupted)) {}

Interruptible::~Interruptible() { t_interrupted = outer_; }

bool IsInterrupted() { return t_interrupted != nullptr && t_interrupted->load(std::memory_order_relaxed); }

absl::Status CheckInterrupted() {
  if (!IsInterrupted()) return absl::OkStatus();
  return Refuse(Refusal::kCancelled, "nobody waits for it any more");
}

}  // namespace tensord
