#include "engine/exec/program/sessions.h"

#include "engine/ops/core_ops.h"
#include "engine/ops/engine_family.h"

namespace tensord {

InstructionKind KindOf(const ExecInstruction& instruction) {
  // With its size among the operands; in a stage, the host has read that and a copy is left.
  if (Is(*instruction.op, CoreOp::kDynamicTruncate)) {
    return instruction.operands.size() > 1 ? InstructionKind::kHost : InstructionKind::kSession;
  }
  const absl::string_view family = instruction.op->family;
  const bool joins = family == "core" || family == kEngineFamily || instruction.op->has(kJoinsSessions);
  return joins ? InstructionKind::kSession : InstructionKind::kBoundary;
}

absl::string_view Name(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::kHost:
      return "host";
    case InstructionKind::kSession:
      return "session";
    case InstructionKind::kBoundary:
      return "boundary";
  }
  return "?";
}

std::vector<int32_t> SegmentsOf(absl::Span<const std::optional<OperandView>> views) {
  std::vector<int32_t> segments;
  segments.reserve(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    if (!views[i].has_value()) segments.push_back(static_cast<int32_t>(i));
  }
  return segments;
}

std::vector<int32_t> SegmentsOf(const ExecProgram& program) {
  std::vector<int32_t> segments;
  segments.reserve(program.instructions.size());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (!IsAlwaysView(program.instructions[i])) segments.push_back(static_cast<int32_t>(i));
  }
  return segments;
}

std::vector<SessionRange> SessionsOf(const ExecProgram& program, absl::Span<const int32_t> segments) {
  std::vector<SessionRange> sessions;
  for (size_t i = 0; i < segments.size(); ++i) {
    const InstructionKind kind = KindOf(program.instructions[static_cast<size_t>(segments[i])]);
    const bool joins = program.one_session && kind == InstructionKind::kSession && !sessions.empty() &&
                       sessions.back().kind == InstructionKind::kSession;
    if (joins) {
      sessions.back().end = i + 1;
    } else {
      sessions.push_back({.begin = i, .end = i + 1, .kind = kind});
    }
  }
  return sessions;
}

}  // namespace tensord
