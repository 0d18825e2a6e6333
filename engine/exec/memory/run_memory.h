#ifndef TENSORD_ENGINE_EXEC_MEMORY_RUN_MEMORY_H_
#define TENSORD_ENGINE_EXEC_MEMORY_RUN_MEMORY_H_

#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/backend/buffer.h"
#include "engine/exec/memory/buffer_plan.h"

namespace tensord {

// The memory of one run by its plan: one arena, the buffers of the results, and an address a slot. Confined to the
// run's thread; its memory goes with it, but for the results.
class RunMemory {
 public:
  // Allocates the memory. Refused if the backend has none. The plan and the contents of the spans must outlive it.
  static absl::StatusOr<RunMemory> Allocate(const BufferPlan& plan, Backend* backend,
                                            absl::Span<const BufferPtr> arguments,
                                            absl::Span<const BufferPtr> constants,
                                            absl::Span<const BufferPtr> destinations = {});

  absl::Span<void* const> slots() const { return slots_; }
  // Scratch by segment: null if it needs none; empty if none does.
  absl::Span<void* const> scratch() const { return scratch_; }
  // Returns a buffer an output, of exactly its size. Outputs may share memory, with each other, with arguments and
  // constants.
  std::vector<BufferPtr> Results() const;

 private:
  RunMemory() = default;
  const BufferPtr& Owner(const SlotHome& home) const;

  const BufferPlan* plan_ = nullptr;
  absl::Span<const BufferPtr> arguments_;
  absl::Span<const BufferPtr> constants_;
  absl::Span<const BufferPtr> destinations_;  // by output; empty: the plan has none
  absl::InlinedVector<BufferPtr, 2> results_;
  BufferPtr arena_;
  absl::InlinedVector<void*, 64> slots_;
  absl::InlinedVector<void*, 16> scratch_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MEMORY_RUN_MEMORY_H_
