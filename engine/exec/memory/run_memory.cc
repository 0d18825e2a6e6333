#include "engine/exec/memory/run_memory.h"

#include <cstdint>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/exec/memory/block_placement.h"

namespace tensord {
namespace {

// Arguments may be aligned to less than scratch is.
void* AlignUp(char* address) {
  constexpr uintptr_t kMask = kBufferAlignment - 1;
  return address + (-reinterpret_cast<uintptr_t>(address) & kMask);
}

}  // namespace

absl::StatusOr<RunMemory> RunMemory::Allocate(const BufferPlan& plan, Backend* backend,
                                              absl::Span<const BufferPtr> arguments,
                                              absl::Span<const BufferPtr> constants,
                                              absl::Span<const BufferPtr> destinations) {
  RunMemory memory;
  memory.plan_ = &plan;
  memory.arguments_ = arguments;
  memory.constants_ = constants;
  memory.destinations_ = destinations;
  memory.results_.reserve(plan.result_bytes.size());
  for (int64_t bytes : plan.result_bytes) {
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, backend->Allocate(bytes));
    memory.results_.push_back(std::move(buffer));
  }
  if (plan.arena_bytes > 0) {
    ASSIGN_OR_RETURN(memory.arena_, backend->Allocate(plan.arena_bytes));
  }
  memory.slots_.resize(plan.homes.size());
  for (size_t i = 0; i < plan.homes.size(); ++i) {
    const SlotHome& home = plan.homes[i];
    if (home.kind == SlotHome::Kind::kNone) continue;
    memory.slots_[i] = static_cast<char*>(memory.Owner(home)->address()) + home.offset;
  }
  memory.scratch_.resize(plan.scratch.size());
  for (size_t i = 0; i < plan.scratch.size(); ++i) {
    const SlotHome& home = plan.scratch[i];
    if (home.kind == SlotHome::Kind::kNone) continue;
    memory.scratch_[i] = AlignUp(static_cast<char*>(memory.Owner(home)->address()) + home.offset);
  }
  return memory;
}

const BufferPtr& RunMemory::Owner(const SlotHome& home) const {
  const size_t index = static_cast<size_t>(home.index);
  switch (home.kind) {
    case SlotHome::Kind::kArgument:
      return arguments_[index];
    case SlotHome::Kind::kConstant:
      return constants_[index];
    case SlotHome::Kind::kResult:
      return results_[index];
    case SlotHome::Kind::kDestination:
      return destinations_[index];
    case SlotHome::Kind::kNone:
    case SlotHome::Kind::kArena:
      break;
  }
  return arena_;
}

std::vector<BufferPtr> RunMemory::Results() const {
  std::vector<BufferPtr> results;
  results.reserve(plan_->outputs.size());
  for (const PlannedOutput& output : plan_->outputs) {
    results.push_back(Buffer::View(Owner(output.home), output.home.offset, output.bytes));
  }
  return results;
}

}  // namespace tensord
