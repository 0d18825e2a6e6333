#ifndef TENSORD_ENGINE_EXEC_MEMORY_BUFFER_PLAN_H_
#define TENSORD_ENGINE_EXEC_MEMORY_BUFFER_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/exec/backend/segment_chain.h"
#include "engine/exec/program/exec_program.h"
#include "engine/exec/program/value_views.h"
#include "engine/fusion/micro_program.h"
#include "engine/tensor/shape.h"

namespace tensord {

// The place of a slot in one run.
struct SlotHome {
  enum class Kind : uint8_t { kNone, kArena, kArgument, kConstant, kResult, kDestination };
  Kind kind = Kind::kNone;  // kNone: nothing reads or writes the slot
  int32_t index = 0;        // of the argument, the constant, the buffer that is made for results or the output
  int64_t offset = 0;       // in bytes, into that memory
  friend bool operator==(const SlotHome&, const SlotHome&) = default;
};

// An output is a piece of a buffer that outlives the run: nothing is copied for it. Never in the arena.
struct PlannedOutput {
  SlotHome home;
  int64_t bytes = 0;
};

struct BufferPlan {
  std::vector<SlotHome> homes;         // by slot
  std::vector<PlannedOutput> outputs;  // by output
  std::vector<int64_t> result_bytes;   // of the buffers that are made for results
  std::vector<SlotHome> scratch;       // by segment, kNone where it needs none; empty where none does
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;  // of arguments, results, temporaries and scratch together, but for what has a destination
};

struct BufferPlanRequest {
  const ExecProgram& program;
  absl::Span<const ConcreteType> slot_types;
  absl::Span<const std::optional<OperandView>> views;                    // by instruction, as FindViews has them
  absl::Span<const std::unique_ptr<const MicroProgram>> micro_programs;  // by instruction; null, or empty: not fused
  absl::Span<const int64_t> scratch_bytes;                               // by segment; empty: none
  absl::Span<const SegmentChain> chains;                                 // by position of segments
  absl::Span<const bool> donated;  // by argument: the run may write over it; empty: none
  // True for outputs for which the caller has memory, which others may read and write meanwhile; empty: for none.
  absl::Span<const bool> destinations;
};

// Plans the memory of a program whose sizes are known.
//
// A slot's memory is free from its last use on: for the results that may overwrite it (overwrites.h), and else for any.
// Without marked last uses nothing is reused. A view has its operand's memory. A slot that is no argument, constant or
// output lies in one arena, in a donated argument, or in a result's buffer before the result is there. A donated
// argument becomes the buffer of a result of its size.
//
// Scratch is a temporary that lives in its segment alone; if its home is an argument, which may be aligned to less, it
// has room to be aligned there. Slots that the segments of a chain read and write live until all of them are through,
// and nothing is overwritten there.
//
// An output lies in its destination if that is harmless (ResultsThatMayChange) and no other output shares its memory:
// nothing else lies there at any time, and no argument is used up for it.
//
// SHAPE_OVERFLOW if the sum would not fit into 64 bits; also refuses as CheckStopped does.
absl::StatusOr<BufferPlan> PlanBuffers(const BufferPlanRequest& request);

// "argument 0", "result 1 at 128", "temporary at 64", "destination 2"; "nowhere".
std::string ToString(const SlotHome& home);
std::string ToString(const BufferPlan& plan);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MEMORY_BUFFER_PLAN_H_
