#include "tests/testlib/micro/micro_builder.h"

#include <algorithm>

#include "engine/ops/scalar/scalar_math.h"

namespace tensord {
namespace {

Literal RealConstant(DType dtype, double value) {
  return VisitDType(dtype,
                    [&]<typename T>(TypeTag<T>) { return Literal::Scalar<T>(scalar::ConvertElement<T>(value)); });
}

// The highest level of the operands.
MicroLevel LevelOf(const MicroProgram& program, std::initializer_list<int32_t> operands) {
  MicroLevel level = MicroLevel::kUniform;
  for (int32_t v : operands) level = std::max(level, program.instructions[static_cast<size_t>(v)].level);
  return level;
}

}  // namespace

MicroBuilder::MicroBuilder(std::vector<MicroAxis> axes) { program_.axes.assign(axes.begin(), axes.end()); }

int32_t MicroBuilder::Add(MicroInstruction instruction) {
  for (int32_t operand : instruction.operands) {
    if (operand < 0) continue;
    const MicroInstruction& of = program_.instructions[static_cast<size_t>(operand)];
    instruction.stage = std::max(instruction.stage, of.stage + (instruction.kind == MicroKind::kReduce ? 1 : 0));
  }
  program_.instructions.push_back(std::move(instruction));
  return static_cast<int32_t>(program_.instructions.size()) - 1;
}

int32_t MicroBuilder::Load(DType dtype, MicroLevel level) {
  MicroAccess dense;
  int64_t stride = 1;
  for (const MicroAxis& axis : program_.axes) {
    const bool has_axis = level == MicroLevel::kFull || (level == MicroLevel::kKept && !axis.is_reduced);
    dense.strides.push_back(has_axis ? stride : 0);
    if (has_axis) stride *= axis.size;
  }
  return Load(dtype, level, std::move(dense));
}

int32_t MicroBuilder::Load(DType dtype, MicroLevel level, MicroAccess access) {
  program_.tensors.push_back(dtype);
  return Add({.kind = MicroKind::kLoad,
              .level = level,
              .dtype = dtype,
              .tensor = static_cast<int32_t>(program_.tensors.size()) - 1,
              .access = std::move(access)});
}

int32_t MicroBuilder::Iota(DType dtype, MicroLevel level, MicroAccess access) {
  return Add({.kind = MicroKind::kIota, .level = level, .dtype = dtype, .access = std::move(access)});
}

int32_t MicroBuilder::Constant(Literal value) {
  const DType dtype = value.dtype();
  return Add({.kind = MicroKind::kConstant,
              .level = MicroLevel::kUniform,
              .dtype = dtype,
              .constant = std::make_shared<const Literal>(std::move(value))});
}

int32_t MicroBuilder::Unary(CoreOp op, int32_t a) {
  return Add({.kind = MicroKind::kUnary,
              .level = LevelOf(program_, {a}),
              .dtype = ResultDType(op, dtype(a)),
              .op = op,
              .operands = {a, -1, -1}});
}

int32_t MicroBuilder::Binary(CoreOp op, int32_t a, int32_t b) {
  return Add({.kind = MicroKind::kBinary,
              .level = LevelOf(program_, {a, b}),
              .dtype = ResultDType(op, dtype(a)),
              .op = op,
              .operands = {a, b, -1}});
}

int32_t MicroBuilder::Compare(CompareDirection direction, int32_t a, int32_t b) {
  return Add({.kind = MicroKind::kCompare,
              .level = LevelOf(program_, {a, b}),
              .dtype = DType::kBool,
              .direction = direction,
              .operands = {a, b, -1}});
}

int32_t MicroBuilder::Select(int32_t predicate, int32_t on_true, int32_t on_false) {
  return Add({.kind = MicroKind::kSelect,
              .level = LevelOf(program_, {predicate, on_true, on_false}),
              .dtype = dtype(on_true),
              .operands = {predicate, on_true, on_false}});
}

int32_t MicroBuilder::Clamp(int32_t low, int32_t x, int32_t high) {
  return Add({.kind = MicroKind::kClamp,
              .level = LevelOf(program_, {low, x, high}),
              .dtype = dtype(x),
              .operands = {low, x, high}});
}

int32_t MicroBuilder::Convert(DType to, int32_t a) {
  return Add({.kind = MicroKind::kConvert, .level = LevelOf(program_, {a}), .dtype = to, .operands = {a, -1, -1}});
}

int32_t MicroBuilder::Reduce(ReduceKind kind, int32_t a) {
  return Add({.kind = MicroKind::kReduce,
              .level = MicroLevel::kKept,
              .dtype = dtype(a),
              .reduce = kind,
              .operands = {a, -1, -1}});
}

void MicroBuilder::Result(int32_t value) { program_.results.push_back({.value = value}); }

DType ResultDType(CoreOp op, DType operand) {
  switch (op) {
    case CoreOp::kAbs:
    case CoreOp::kReal:
    case CoreOp::kImag:
      return RealPartOf(operand);
    case CoreOp::kIsFinite:
      return DType::kBool;
    case CoreOp::kComplex:
      return operand == DType::kF64 ? DType::kC128 : DType::kC64;
    default:
      return operand;
  }
}

MicroProgram SoftmaxProgram(int64_t length, int64_t rows, DType dtype) {
  MicroBuilder b({{.size = length, .is_reduced = true}, {.size = rows}});
  const int32_t x = b.Load(dtype, MicroLevel::kFull);
  const int32_t e = b.Unary(CoreOp::kExp, b.Binary(CoreOp::kSubtract, x, b.Reduce(ReduceKind::kMax, x)));
  b.Result(b.Binary(CoreOp::kDivide, e, b.Reduce(ReduceKind::kSum, e)));
  return b.Build();
}

MicroProgram LayerNormProgram(int64_t length, int64_t rows, DType dtype) {
  MicroBuilder b({{.size = length, .is_reduced = true}, {.size = rows}});
  const int32_t x = b.Load(dtype, MicroLevel::kFull);
  const int32_t scale = b.Load(dtype, MicroLevel::kFull, {.strides = {1, 0}});
  const int32_t shift = b.Load(dtype, MicroLevel::kFull, {.strides = {1, 0}});
  const int32_t count = b.Constant(RealConstant(dtype, static_cast<double>(length)));
  const int32_t epsilon = b.Constant(RealConstant(dtype, 1e-5));
  const int32_t mean = b.Binary(CoreOp::kDivide, b.Reduce(ReduceKind::kSum, x), count);
  const int32_t centred = b.Binary(CoreOp::kSubtract, x, mean);
  const int32_t squares = b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kMultiply, centred, centred));
  const int32_t variance = b.Binary(CoreOp::kDivide, squares, count);
  const int32_t inverse = b.Unary(CoreOp::kRsqrt, b.Binary(CoreOp::kAdd, variance, epsilon));
  const int32_t scaled = b.Binary(CoreOp::kMultiply, b.Binary(CoreOp::kMultiply, centred, inverse), scale);
  b.Result(b.Binary(CoreOp::kAdd, scaled, shift));
  return b.Build();
}

MicroProgram VarianceProgram(int64_t length, int64_t rows, DType dtype) {
  MicroBuilder b({{.size = length, .is_reduced = true}, {.size = rows}});
  const int32_t x = b.Load(dtype, MicroLevel::kFull);
  const int32_t count = b.Constant(RealConstant(dtype, static_cast<double>(length)));
  const int32_t mean = b.Binary(CoreOp::kDivide, b.Reduce(ReduceKind::kSum, x), count);
  const int32_t centred = b.Binary(CoreOp::kSubtract, x, mean);
  const int32_t squares = b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kMultiply, centred, centred));
  b.Result(mean);
  b.Result(b.Binary(CoreOp::kDivide, squares, count));
  return b.Build();
}

}  // namespace tensord
