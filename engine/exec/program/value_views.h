#ifndef TENSORD_ENGINE_EXEC_PROGRAM_VALUE_VIEWS_H_
#define TENSORD_ENGINE_EXEC_PROGRAM_VALUE_VIEWS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/exec/program/exec_program.h"
#include "engine/tensor/shape.h"

namespace tensord {

// The place of an instruction's result in its first operand, in order: nothing is to be computed.
struct OperandView {
  int64_t offset_bytes = 0;
};

// Returns the view, or nothing if the instruction has to be run. A reshape in column-major order and an
// optimization barrier are views. So are a transpose and a broadcast that only move, add or drop axes of size 1, and a
// slice that is one piece of the memory.
std::optional<OperandView> ViewOf(const ExecInstruction& instruction, const ConcreteType& operand,
                                  const ConcreteType& result);

// Tells whether ViewOf returns a view for all sizes.
bool IsAlwaysView(const ExecInstruction& instruction);

inline constexpr int32_t kNeverRead = -1;
inline constexpr int32_t kReadToTheEnd = std::numeric_limits<int32_t>::max();

// Returns by slot the index of the last instruction that reads it, kNeverRead, or kReadToTheEnd. The latter is for
// outputs and, if nobody has looked for last uses, for all slots that are read at all.
std::vector<int32_t> LastReads(const ExecProgram& program);

// Returns by instruction the view that its result is. As ViewOf, except for small parts of a large temporary that they
// would keep longer than its other readers do: those are copied. Asks StopRequested.
std::vector<std::optional<OperandView>> FindViews(const ExecProgram& program,
                                                  absl::Span<const ConcreteType> slot_types);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PROGRAM_VALUE_VIEWS_H_
