#ifndef TENSORD_ENGINE_EXEC_BUFFER_PLAN_H_
#define TENSORD_ENGINE_EXEC_BUFFER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/exec/exec_program.h"
#include "engine/tensor/shape.h"

namespace tensord {

// Where each slot lives in one run.
struct SlotHome {
  enum class Kind : uint8_t { kNone, kArgument, kConstant, kArena, kResult };
  Kind kind = Kind::kNone;  // kNone: nothing reads or writes the slot
  int64_t position = 0;     // index of the argument, constant or output; offset into the arena
};

// An output that is an argument, a constant or another output as well: copied when the instructions have run.
struct OutputCopy {
  int32_t output = 0;
  Slot from = 0;
};

struct BufferPlan {
  std::vector<SlotHome> homes;  // by slot
  std::vector<OutputCopy> copies;
  int64_t arena_bytes = 0;
  int64_t scratch_offset = 0;  // into the arena
};

inline constexpr int64_t kBufferAlignment = 64;

// Plans the memory of a program whose sizes are known: a slot's memory is free from its last use on, an elementwise
// instruction writes over an operand that it uses last, a column-major reshape is a second name of its operand, and
// everything that is no argument, constant or output lies in one arena. `scratch_bytes` more are set aside in it.
// SHAPE_OVERFLOW where the arena would not fit into 64 bits.
absl::StatusOr<BufferPlan> PlanBuffers(const ExecProgram& program, absl::Span<const ConcreteType> slot_types,
                                       int64_t scratch_bytes);

// Whether the instruction only renames its operand, so that nothing is to be run.
bool IsAlias(const ExecInstruction& instruction);

std::string ToString(const BufferPlan& plan);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BUFFER_PLAN_H_
