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

// Where the elements of an instruction's result lie in its first operand, in their order: nothing is to be computed.
struct OperandView {
  int64_t offset_bytes = 0;
};

// Nothing where the instruction has to be run: a reshape in column-major order is a view, and so are a transpose and a
// broadcast that only move, add or drop axes of size 1, and a slice that is one piece of the memory.
std::optional<OperandView> ViewOf(const ExecInstruction& instruction, const ConcreteType& operand,
                                  const ConcreteType& result);

// Whether ViewOf says so for all sizes.
bool IsAlwaysView(const ExecInstruction& instruction);

inline constexpr int32_t kNeverRead = -1;
inline constexpr int32_t kReadToTheEnd = std::numeric_limits<int32_t>::max();

// By slot: the index of the instruction that reads it last, kNeverRead, or kReadToTheEnd for an output and, where
// nobody has looked for last uses, for everything that is read at all.
std::vector<int32_t> LastReads(const ExecProgram& program);

// By instruction: the view that its result is. As ViewOf says, but for small parts of a large temporary that would keep
// it longer than its other readers do: those are copied. Asks StopRequested.
std::vector<std::optional<OperandView>> FindViews(const ExecProgram& program,
                                                  absl::Span<const ConcreteType> slot_types);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PROGRAM_VALUE_VIEWS_H_
