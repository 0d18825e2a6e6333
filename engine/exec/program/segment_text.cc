#include "engine/exec/program/segment_text.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/semiring.h"

namespace tensord {
namespace {

constexpr size_t kMaxNamedOps = 32;  // in one name: a span's attribute stays a line or two

template <typename Type>
std::string Text(const ExecInstruction& instruction, absl::Span<const Type> slot_types) {
  const auto append = [&](absl::Span<const Slot> slots, std::string* text) {
    for (size_t i = 0; i < slots.size(); ++i) {
      absl::StrAppend(text, i == 0 ? "" : ", ", ToString(slot_types[static_cast<size_t>(slots[i])]));
    }
  };
  std::string text = "(";
  append(instruction.operands, &text);
  text += ") -> ";
  append(instruction.results, &text);
  return text;
}

}  // namespace

std::string KernelName(const ExecInstruction& instruction) {
  std::string name(instruction.op->name);
  if (Is(*instruction.op, CoreOp::kDotGeneral) && AlgebraOf(instruction.attrs) != Algebra::kStandard) {
    absl::StrAppend(&name, " in ", kAlgebraNames[static_cast<size_t>(AlgebraOf(instruction.attrs))]);
  }
  if (instruction.body == nullptr) return name;
  name += ":";
  size_t ops = 0;
  for (const Node& node : instruction.body->nodes()) {
    if (Is(*node.op, CoreOp::kConstant)) continue;
    if (++ops <= kMaxNamedOps) absl::StrAppend(&name, " ", node.op->name);
  }
  if (ops > kMaxNamedOps) absl::StrAppend(&name, " and ", ops - kMaxNamedOps, " more");
  return name;
}

std::string TypesText(const ExecInstruction& instruction, absl::Span<const ConcreteType> slot_types) {
  return Text(instruction, slot_types);
}

std::string TypesText(const ExecInstruction& instruction, absl::Span<const TensorType> slot_types) {
  return Text(instruction, slot_types);
}

std::vector<std::string> NodesOf(const ExecInstruction& instruction) {
  if (instruction.body == nullptr) return {instruction.node};
  std::vector<std::string> names;
  absl::flat_hash_set<absl::string_view> seen;
  for (const Node& node : instruction.body->nodes()) {
    if (Is(*node.op, CoreOp::kConstant)) continue;
    if (seen.insert(node.name).second) names.push_back(node.name);
  }
  return names;
}

}  // namespace tensord
