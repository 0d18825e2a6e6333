#include "engine/fusion/micro_program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/literal_text.h"
#include "engine/ops/reduction.h"
#include "engine/ops/selection.h"

namespace tensord {
namespace {

bool IsAt(MicroLevel level, const MicroAxis& axis) {
  return level == MicroLevel::kFull || (level == MicroLevel::kKept && !axis.is_reduced);
}

absl::string_view Name(MicroLevel level) {
  switch (level) {
    case MicroLevel::kUniform:
      return "uniform";
    case MicroLevel::kKept:
      return "kept";
    case MicroLevel::kFull:
      break;
  }
  return "full";
}

std::string ToString(const MicroAccess& access) {
  std::string text = absl::StrCat(access.offset);
  for (size_t d = 0; d < access.strides.size(); ++d) {
    if (access.strides[d] != 0) absl::StrAppend(&text, " + ", access.strides[d], "*i", d);
  }
  return text;
}

// "load t0[…]", "add(v1, v2)".
std::string Text(const MicroInstruction& instruction) {
  std::string text;
  switch (instruction.kind) {
    case MicroKind::kLoad:
      return absl::StrCat("load t", instruction.tensor, "[", ToString(instruction.access), "]");
    case MicroKind::kIota:
      return absl::StrCat("iota ", ToString(instruction.access));
    case MicroKind::kConstant:
      return absl::StrCat("constant ", LiteralText(*instruction.constant));
    case MicroKind::kUnary:
    case MicroKind::kBinary:
      text = std::string(Def(instruction.op).name);
      break;
    case MicroKind::kCompare:
      text = absl::StrCat("compare ", kDirections[static_cast<size_t>(instruction.direction)]);
      break;
    case MicroKind::kSelect:
      text = "select";
      break;
    case MicroKind::kClamp:
      text = "clamp";
      break;
    case MicroKind::kConvert:
      text = "convert";
      break;
    case MicroKind::kReduce:
      text = absl::StrCat("reduce ", kReduceKinds[static_cast<size_t>(instruction.reduce)]);
      break;
  }
  const auto end = std::find(instruction.operands.begin(), instruction.operands.end(), -1);
  return absl::StrCat(text, "(",
                      absl::StrJoin(instruction.operands.begin(), end, ", ",
                                    [](std::string* out, int32_t v) { absl::StrAppend(out, "v", v); }),
                      ")");
}

// Returns the strides of a dense column-major tensor over the axes of a level.
absl::InlinedVector<int64_t, 6> DenseStrides(const MicroProgram& program, MicroLevel level) {
  absl::InlinedVector<int64_t, 6> strides;
  int64_t stride = 1;
  for (const MicroAxis& axis : program.axes) {
    strides.push_back(IsAt(level, axis) ? stride : 0);
    if (IsAt(level, axis)) stride *= axis.size;
  }
  return strides;
}

}  // namespace

bool MicroProgram::has_reduced_axes() const {
  return std::any_of(axes.begin(), axes.end(), [](const MicroAxis& axis) { return axis.is_reduced; });
}

int64_t MicroProgram::num_points(MicroLevel level) const {
  int64_t points = 1;
  for (const MicroAxis& axis : axes) {
    if (IsAt(level, axis)) points *= axis.size;
  }
  return points;
}

int32_t MicroProgram::num_stages() const {
  int32_t last = 0;
  for (const MicroInstruction& instruction : instructions) last = std::max(last, instruction.stage);
  return last + 1;
}

bool IsDense(const MicroProgram& program, const MicroAccess& access, MicroLevel level) {
  return access.offset == 0 && access.strides == DenseStrides(program, level);
}

std::vector<std::pair<int32_t, int32_t>> InPlacePairs(const MicroProgram& program) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  if (program.num_stages() > 1) return pairs;
  // By operand: the last instruction that reads the loaded element, or a value past the end if it must stay as it is.
  const int32_t never = static_cast<int32_t>(program.instructions.size());
  std::vector<int32_t> last_read(program.tensors.size(), -1);
  std::vector<int32_t> tensor_of(program.instructions.size(), -1);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const MicroInstruction& instruction = program.instructions[i];
    if (instruction.kind == MicroKind::kLoad) {
      tensor_of[i] = instruction.tensor;
      int32_t& last = last_read[static_cast<size_t>(instruction.tensor)];
      if (instruction.level != MicroLevel::kFull || !IsDense(program, instruction.access, MicroLevel::kFull))
        last = never;
    }
    for (int32_t operand : instruction.operands) {
      if (operand < 0 || tensor_of[static_cast<size_t>(operand)] < 0) continue;
      int32_t& last = last_read[static_cast<size_t>(tensor_of[static_cast<size_t>(operand)])];
      last = std::max(last, static_cast<int32_t>(i));
    }
  }
  // A value that is a load is copied when the others are there.
  for (const MicroResult& result : program.results) {
    const int32_t tensor = tensor_of[static_cast<size_t>(result.value)];
    if (tensor >= 0) last_read[static_cast<size_t>(tensor)] = never;
  }
  for (size_t r = 0; r < program.results.size(); ++r) {
    const int32_t value = program.results[r].value;
    const MicroInstruction& instruction = program.instructions[static_cast<size_t>(value)];
    if (instruction.level != MicroLevel::kFull || instruction.kind == MicroKind::kLoad) continue;
    for (size_t t = 0; t < program.tensors.size(); ++t) {
      if (last_read[t] >= 0 && last_read[t] <= value && SizeOf(program.tensors[t]) == SizeOf(instruction.dtype)) {
        pairs.emplace_back(static_cast<int32_t>(r), static_cast<int32_t>(t));
      }
    }
  }
  return pairs;
}

std::string ToString(const MicroProgram& program) {
  std::string text = "axes";
  for (const MicroAxis& axis : program.axes) absl::StrAppend(&text, " ", axis.size, axis.is_reduced ? "r" : "");
  absl::StrAppend(&text, "\n");
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const MicroInstruction& instruction = program.instructions[i];
    absl::StrAppend(&text, "v", i, " = ", Text(instruction), " : ", tensord::Name(instruction.dtype), " ",
                    Name(instruction.level));
    if (instruction.stage > 0) absl::StrAppend(&text, " stage ", instruction.stage);
    absl::StrAppend(&text, "\n");
  }
  for (size_t r = 0; r < program.results.size(); ++r) {
    absl::StrAppend(&text, "result ", r, " = v", program.results[r].value, "\n");
  }
  return text;
}

}  // namespace tensord
