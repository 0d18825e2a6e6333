#include "tests/testlib/micro/micro_evaluator.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/ops/scalar/scalar_math.h"

namespace tensord {
namespace {

bool HasAxis(const MicroAxis& axis, MicroLevel level) {
  return level == MicroLevel::kFull || (level == MicroLevel::kKept && !axis.is_reduced);
}

// Calls body(index) for each point of a level, the first axis fastest; the index has one entry an axis of the program.
template <typename Body>
void ForEachPoint(const MicroProgram& program, MicroLevel level, const Body& body) {
  if (program.num_points(level) == 0) return;
  std::vector<int64_t> index(program.axes.size(), 0);
  while (true) {
    body(index);
    size_t d = 0;
    for (; d < index.size(); ++d) {
      if (!HasAxis(program.axes[d], level)) continue;
      if (++index[d] < program.axes[d].size) break;
      index[d] = 0;
    }
    if (d == index.size()) return;
  }
}

int64_t ElementAt(const MicroAccess& access, const std::vector<int64_t>& index) {
  int64_t element = access.offset;
  for (size_t d = 0; d < index.size(); ++d) element += index[d] * access.strides[d];
  return element;
}

int64_t PointAt(const MicroProgram& program, MicroLevel level, const std::vector<int64_t>& index) {
  int64_t point = 0, stride = 1;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!HasAxis(program.axes[d], level)) continue;
    point += index[d] * stride;
    stride *= program.axes[d].size;
  }
  return point;
}

Literal Leaf(const MicroProgram& program, const MicroInstruction& instruction, const std::vector<Literal>& tensors) {
  const int64_t points = program.num_points(instruction.level);
  Literal value = Literal::Create({instruction.dtype, {points}}).value();
  const size_t bytes = static_cast<size_t>(SizeOf(instruction.dtype));
  char* to = value.mutable_data();
  ForEachPoint(program, instruction.level, [&](const std::vector<int64_t>& index) {
    if (instruction.kind == MicroKind::kIota) {
      VisitDType(instruction.dtype, [&]<typename T>(TypeTag<T>) {
        const T number = scalar::ConvertElement<T>(ElementAt(instruction.access, index));
        std::memcpy(to, &number, sizeof(T));
      });
    } else if (instruction.kind == MicroKind::kConstant) {
      std::memcpy(to, instruction.constant->bytes().data(), bytes);
    } else {
      const absl::string_view tensor = tensors[static_cast<size_t>(instruction.tensor)].bytes();
      std::memcpy(to, tensor.data() + static_cast<size_t>(ElementAt(instruction.access, index)) * bytes, bytes);
    }
    to += bytes;
  });
  return value;
}

// A value at all points of another level that has its axes.
Literal Spread(const MicroProgram& program, const Literal& value, MicroLevel from, MicroLevel to) {
  if (from == to) return value;
  Literal spread = Literal::Create({value.dtype(), {program.num_points(to)}}).value();
  const size_t bytes = static_cast<size_t>(SizeOf(value.dtype()));
  char* out = spread.mutable_data();
  ForEachPoint(program, to, [&](const std::vector<int64_t>& index) {
    std::memcpy(out, value.bytes().data() + static_cast<size_t>(PointAt(program, from, index)) * bytes, bytes);
    out += bytes;
  });
  return spread;
}

CoreOp OpOf(const MicroInstruction& instruction) {
  switch (instruction.kind) {
    case MicroKind::kCompare:
      return CoreOp::kCompare;
    case MicroKind::kSelect:
      return CoreOp::kSelect;
    case MicroKind::kClamp:
      return CoreOp::kClamp;
    case MicroKind::kConvert:
      return CoreOp::kConvert;
    case MicroKind::kReduce:
      return CoreOp::kReduce;
    default:
      return instruction.op;
  }
}

Literal Compute(const MicroProgram& program, const MicroInstruction& instruction, const std::vector<Literal>& values,
                const EvaluateOp& evaluate) {
  const CoreOp op = OpOf(instruction);
  Attributes attrs(Def(op).attrs);
  const bool reduces = op == CoreOp::kReduce;
  const MicroLevel level = reduces ? MicroLevel::kFull : instruction.level;
  std::vector<Literal> operands;
  for (int32_t v : instruction.operands) {
    if (v < 0) break;
    const MicroLevel from = program.instructions[static_cast<size_t>(v)].level;
    operands.push_back(Spread(program, values[static_cast<size_t>(v)], from, level));
  }
  ConcreteType type{instruction.dtype, {program.num_points(instruction.level)}};
  if (op == CoreOp::kCompare) attrs.Set("direction", static_cast<int64_t>(instruction.direction));
  if (op == CoreOp::kConvert) attrs.Set("dtype", instruction.dtype);
  if (reduces) {
    Shape shape;
    std::vector<int64_t> reduced;
    type.shape.clear();
    for (size_t d = 0; d < program.axes.size(); ++d) {
      shape.push_back(program.axes[d].size);
      if (program.axes[d].is_reduced) {
        reduced.push_back(static_cast<int64_t>(d));
      } else {
        type.shape.push_back(program.axes[d].size);
      }
    }
    operands[0] = operands[0].WithShape(shape);
    attrs.Set("kind", static_cast<int64_t>(instruction.reduce)).Set("dimensions", reduced);
  }
  std::vector<const Literal*> pointers;
  for (const Literal& operand : operands) pointers.push_back(&operand);
  return evaluate(op, attrs, std::move(pointers), type).WithShape({type.num_elements()});
}

}  // namespace

Literal EvaluateByReference(CoreOp op, const Attributes& attrs, std::vector<const Literal*> operands,
                            ConcreteType type) {
  Literal result = Literal::Create(std::move(type)).value();
  const absl::Status status =
      Def(op).reference.get()({.attrs = attrs, .operands = operands, .results = absl::MakeSpan(&result, 1)});
  if (!status.ok()) {
    std::fprintf(stderr, "the reference of %s: %s\n", Def(op).name.data(), status.ToString().c_str());
    std::abort();
  }
  return result;
}

std::vector<Literal> EvaluateMicroProgram(const MicroProgram& program, const std::vector<Literal>& tensors,
                                          const EvaluateOp& evaluate) {
  std::vector<Literal> values;
  for (const MicroInstruction& instruction : program.instructions) {
    const bool is_leaf = instruction.kind == MicroKind::kLoad || instruction.kind == MicroKind::kIota ||
                         instruction.kind == MicroKind::kConstant;
    values.push_back(is_leaf ? Leaf(program, instruction, tensors) : Compute(program, instruction, values, evaluate));
  }
  std::vector<Literal> results;
  for (const MicroResult& result : program.results) results.push_back(values[static_cast<size_t>(result.value)]);
  return results;
}

}  // namespace tensord
