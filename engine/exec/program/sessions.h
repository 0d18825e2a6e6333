#ifndef TENSORD_ENGINE_EXEC_PROGRAM_SESSIONS_H_
#define TENSORD_ENGINE_EXEC_PROGRAM_SESSIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/exec/program/exec_program.h"
#include "engine/exec/program/value_views.h"

namespace tensord {

// The executor of an instruction.
enum class InstructionKind : uint8_t {
  kHost,      // the host decides something with a value that was computed before: the size of DynamicTruncate
  kSession,   // the device, in a session together with its neighbours
  kBoundary,  // an extension that has not said that it works inside of a session: the device, in one of its own
};
InstructionKind KindOf(const ExecInstruction& instruction);
absl::string_view Name(InstructionKind kind);

// Returns the instructions that are run, in order, as indices into program.instructions: each is one segment, which is
// one kernel. The others are views.
std::vector<int32_t> SegmentsOf(absl::Span<const std::optional<OperandView>> views);
// Returns the instructions that are run whatever the sizes are, and those that some sizes make views.
std::vector<int32_t> SegmentsOf(const ExecProgram& program);

// Segments that run in one session of the backend: a half-open range of positions in a list of segments.
struct SessionRange {
  size_t begin = 0;
  size_t end = 0;
  InstructionKind kind = InstructionKind::kSession;
  friend bool operator==(const SessionRange&, const SessionRange&) = default;
};

// Maximal runs of session instructions; each other instruction, and every one where the program has not asked for
// sessions of several, is a range of its own. Host instructions are among them only in a program that is yet to be cut
// into stages.
std::vector<SessionRange> SessionsOf(const ExecProgram& program, absl::Span<const int32_t> segments);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_PROGRAM_SESSIONS_H_
