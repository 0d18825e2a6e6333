#include "engine/exec/program/exec_program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/liveness.h"
#include "engine/ir/names.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {

bool ExecProgram::is_static() const {
  for (const TensorType& type : slot_types) {
    if (!type.is_static()) return false;
  }
  return true;
}

int64_t ExecProgram::size_bytes() const {
  int64_t bytes = static_cast<int64_t>(sizeof(ExecProgram) + slot_types.size() * sizeof(TensorType) +
                                       instructions.size() * (sizeof(ExecInstruction) + 256));
  int64_t parts = 0;
  for (const TensorType& type : slot_types) {
    for (const Dim& dim : type.shape) parts += dim.size.num_parts();
  }
  for (const ProgramGuard& guard : guards) parts += guard.guard.lhs.num_parts() + guard.guard.rhs.num_parts();
  bytes += parts * static_cast<int64_t>(sizeof(DimTerm) + sizeof(DimAtom));
  for (const ProgramConstant& constant : constants) bytes += static_cast<int64_t>(constant.value->bytes().size());
  return bytes;
}

ExecProgram LowerToProgram(const Graph& graph) {
  ExecProgram program;
  program.name = graph.name();
  program.slot_types.reserve(static_cast<size_t>(graph.num_values()));
  for (int32_t v = 0; v < graph.num_values(); ++v) program.slot_types.push_back(graph.type({v}));
  const std::vector<bool> live = LiveNodes(graph);
  program.instructions.reserve(static_cast<size_t>(std::count(live.begin(), live.end(), true)));
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i]) continue;
    const Node& node = graph.nodes()[i];
    if (Is(*node.op, CoreOp::kConstant)) {
      program.constants.push_back({.slot = node.first_result.index, .value = node.attrs.GetLiteral("value")});
      continue;
    }
    ExecInstruction instruction{
        .op = node.op, .attrs = node.attrs, .node = std::string(WrittenName(node.name)), .body = node.body};
    if (Is(*node.op, CoreOp::kDynamicTruncate)) instruction.decides = RunTimeSymbol(node.name);
    // Shape sources were needed by inference only.
    const size_t computed_with = node.op->has(kShapeSources)
                                     ? std::min(node.operands.size(), static_cast<size_t>(node.op->max_operands))
                                     : node.operands.size();
    for (size_t k = 0; k < computed_with; ++k) instruction.operands.push_back(node.operands[k].index);
    instruction.last_use.resize(instruction.operands.size());
    for (int32_t r = 0; r < node.num_results; ++r) instruction.results.push_back(node.first_result.index + r);
    program.instructions.push_back(std::move(instruction));
  }
  for (const GraphOutput& output : graph.outputs()) {
    program.outputs.push_back({.name = output.name, .slot = output.value.index});
  }
  return program;
}

std::string ToString(const ExecProgram& program) {
  std::string text;
  const auto slot = [](std::string* out, Slot s) { absl::StrAppend(out, "%", s); };
  const auto type = [&](Slot s) { return ToString(program.slot_types[static_cast<size_t>(s)]); };
  absl::StrAppend(&text, "program \"", program.name, "\": ", program.instructions.size(), " instructions, ",
                  program.num_slots(), " slots, ", program.row_major ? "row" : "column", "-major on the wire\n");
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    absl::StrAppend(&text, "  %", i, " = input \"", program.inputs[i].name, "\" : ", type(static_cast<Slot>(i)), "\n");
  }
  for (const ProgramConstant& constant : program.constants) {
    absl::StrAppend(&text, "  %", constant.slot, " = constant : ", type(constant.slot), "\n");
  }
  for (const ExecInstruction& instruction : program.instructions) {
    absl::StrAppend(&text, "  ", absl::StrJoin(instruction.results, ", ", slot), " = ", instruction.op->name, "(");
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ", ", "%", instruction.operands[i], instruction.last_use[i] ? "!" : "");
    }
    absl::StrAppend(&text, ") : ", type(instruction.results[0]), "  # ", instruction.node, "\n");
  }
  for (const ProgramOutput& output : program.outputs) {
    absl::StrAppend(&text, "  output \"", output.name, "\" = %", output.slot, "\n");
  }
  for (const ProgramGuard& guard : program.guards) {
    absl::StrAppend(&text, "  guard ", guard.guard.what, ": ", guard.guard.lhs.ToString(),
                    guard.guard.kind == ShapeGuard::Kind::kAtMost ? " <= " : " == ", guard.guard.rhs.ToString(),
                    guard.guard.kind == ShapeGuard::Kind::kEqualOrOne ? " or 1" : "", "  # ", guard.node, "\n");
  }
  return text;
}

}  // namespace tensord
