#ifndef TENSORD_TESTS_TESTLIB_MICRO_MICRO_BUILDER_H_
#define TENSORD_TESTS_TESTLIB_MICRO_MICRO_BUILDER_H_

#include <utility>
#include <vector>

#include "engine/fusion/micro_program.h"

namespace tensord {

// Makes micro programs for tests, a value at a time; dtypes, levels and stages follow from the operands.
//
//   MicroBuilder b({{.size = 64, .is_reduced = true}, {.size = 8}});
//   const int32_t x = b.Load(DType::kF32, MicroLevel::kFull);
//   b.Result(b.Binary(CoreOp::kSubtract, x, b.Reduce(ReduceKind::kMax, x)));
//   const MicroProgram program = b.Build();
class MicroBuilder {
 public:
  explicit MicroBuilder(std::vector<MicroAxis> axes);

  // A new operand, dense over the level's axes.
  int32_t Load(DType dtype, MicroLevel level);
  // A new operand of any access.
  int32_t Load(DType dtype, MicroLevel level, MicroAccess access);
  int32_t Iota(DType dtype, MicroLevel level, MicroAccess access);
  int32_t Constant(Literal value);
  int32_t Unary(CoreOp op, int32_t a);
  int32_t Binary(CoreOp op, int32_t a, int32_t b);
  int32_t Compare(CompareDirection direction, int32_t a, int32_t b);
  int32_t Select(int32_t predicate, int32_t on_true, int32_t on_false);
  int32_t Clamp(int32_t low, int32_t x, int32_t high);
  int32_t Convert(DType dtype, int32_t a);
  int32_t Reduce(ReduceKind kind, int32_t a);
  void Result(int32_t value);

  MicroProgram Build() { return std::move(program_); }

 private:
  DType dtype(int32_t value) const { return program_.instructions[static_cast<size_t>(value)].dtype; }
  int32_t Add(MicroInstruction instruction);

  MicroProgram program_;
};

// Returns the dtype of an elementwise op's results on elements of a dtype.
DType ResultDType(CoreOp op, DType operand);

// The programs of benchmarks and documents, over `length` elements that are reduced and `rows` that are kept.
MicroProgram SoftmaxProgram(int64_t length, int64_t rows, DType dtype);
MicroProgram LayerNormProgram(int64_t length, int64_t rows, DType dtype);  // operands: x, scale, shift (by column)
MicroProgram VarianceProgram(int64_t length, int64_t rows, DType dtype);   // results: mean, variance

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_MICRO_MICRO_BUILDER_H_
