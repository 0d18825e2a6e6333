// The trace of each operation of the lazy Tensor, and the dtype and shape that it infers.
#include <complex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/messages.h"
#include "tensord/tensord.h"
#include "tests/unit/clients/cpp/lazy/client_tensors.h"
#include "tests/unit/clients/cpp/lazy/traced_text.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Elementwise, InfersDTypes) {
  const Tensor complex = Input<std::complex<double>>({2});
  EXPECT_EQ(Abs(complex).dtype(), DType::kF64);
  EXPECT_EQ(Real(complex).dtype(), DType::kF64);
  EXPECT_EQ(Imag(Input<std::complex<float>>({2})).dtype(), DType::kF32);
  EXPECT_EQ(Sign(complex).dtype(), DType::kC128);
  EXPECT_EQ(IsFinite(Input({2})).dtype(), DType::kBool);
  EXPECT_EQ(Less(Input({2}), 1.0).dtype(), DType::kBool);
  EXPECT_EQ(Complex(Input({2}), 1.0).dtype(), DType::kC64);
  EXPECT_EQ(Complex(Input<double>({2}), Input<double>({})).dtype(), DType::kC128);
  EXPECT_FALSE(Complex(Input<int32_t>({2}), 1).ok());
  EXPECT_EQ(Convert(complex, DType::kBF16).dtype(), DType::kBF16);
}

TEST(Elementwise, BroadcastsExplicitly) {
  EXPECT_EQ(TracedText({Input({2, 1}) - Input({3})}),
            "x0 = input f32[2,1]\n"
            "x1 = input f32[3]\n"
            "n0 = (x0) broadcast_in_dim { shape { size: 2 } shape { size: 3 } broadcast_dimensions: 0 "
            "broadcast_dimensions: 1 }\n"
            "n1 = (x1) broadcast_in_dim { shape { size: 2 } shape { size: 3 } broadcast_dimensions: 1 }\n"
            "n2 = (n0, n1) binary: BINARY_OP_SUBTRACT\n"
            "y0 = n2\n");
}

TEST(Elementwise, EachFunctionMakesItsOwnOp) {
  const Tensor x = Input({2});
  const std::vector<std::pair<Tensor, v1::UnaryOp>> unary = {{Negate(x), v1::UNARY_OP_NEGATE},
                                                             {-x, v1::UNARY_OP_NEGATE},
                                                             {Conj(x), v1::UNARY_OP_CONJ},
                                                             {Abs(x), v1::UNARY_OP_ABS},
                                                             {Sign(x), v1::UNARY_OP_SIGN},
                                                             {Exp(x), v1::UNARY_OP_EXP},
                                                             {Log(x), v1::UNARY_OP_LOG},
                                                             {Sin(x), v1::UNARY_OP_SIN},
                                                             {Cos(x), v1::UNARY_OP_COS},
                                                             {Tanh(x), v1::UNARY_OP_TANH},
                                                             {Sqrt(x), v1::UNARY_OP_SQRT},
                                                             {Rsqrt(x), v1::UNARY_OP_RSQRT},
                                                             {Expm1(x), v1::UNARY_OP_EXPM1},
                                                             {Log1p(x), v1::UNARY_OP_LOG1P},
                                                             {Logistic(x), v1::UNARY_OP_LOGISTIC},
                                                             {Erf(x), v1::UNARY_OP_ERF},
                                                             {Floor(x), v1::UNARY_OP_FLOOR},
                                                             {Ceil(x), v1::UNARY_OP_CEIL},
                                                             {IsFinite(x), v1::UNARY_OP_IS_FINITE},
                                                             {RoundNearestEven(x), v1::UNARY_OP_ROUND_NEAREST_EVEN},
                                                             {Not(x), v1::UNARY_OP_NOT},
                                                             {Real(x), v1::UNARY_OP_REAL},
                                                             {Imag(x), v1::UNARY_OP_IMAG},
                                                             {Tan(x), v1::UNARY_OP_TAN},
                                                             {Cbrt(x), v1::UNARY_OP_CBRT},
                                                             {Sinh(x), v1::UNARY_OP_SINH},
                                                             {Cosh(x), v1::UNARY_OP_COSH},
                                                             {Asin(x), v1::UNARY_OP_ASIN},
                                                             {Acos(x), v1::UNARY_OP_ACOS},
                                                             {Atan(x), v1::UNARY_OP_ATAN},
                                                             {Asinh(x), v1::UNARY_OP_ASINH},
                                                             {Acosh(x), v1::UNARY_OP_ACOSH},
                                                             {Atanh(x), v1::UNARY_OP_ATANH},
                                                             {Log2(x), v1::UNARY_OP_LOG2},
                                                             {Log10(x), v1::UNARY_OP_LOG10},
                                                             {Exp2(x), v1::UNARY_OP_EXP2}};
  for (const auto& [tensor, kind] : unary) EXPECT_EQ(tensor.expression()->op.unary(), kind);
  const std::vector<std::pair<Tensor, v1::BinaryOp>> binary = {{x + x, v1::BINARY_OP_ADD},
                                                               {x - x, v1::BINARY_OP_SUBTRACT},
                                                               {x * x, v1::BINARY_OP_MULTIPLY},
                                                               {x / x, v1::BINARY_OP_DIVIDE},
                                                               {x % x, v1::BINARY_OP_REMAINDER},
                                                               {Pow(x, x), v1::BINARY_OP_POW},
                                                               {Atan2(x, x), v1::BINARY_OP_ATAN2},
                                                               {Maximum(x, x), v1::BINARY_OP_MAXIMUM},
                                                               {Minimum(x, x), v1::BINARY_OP_MINIMUM},
                                                               {And(x, x), v1::BINARY_OP_AND},
                                                               {Or(x, x), v1::BINARY_OP_OR},
                                                               {Xor(x, x), v1::BINARY_OP_XOR},
                                                               {Complex(x, x), v1::BINARY_OP_COMPLEX}};
  for (const auto& [tensor, kind] : binary) EXPECT_EQ(tensor.expression()->op.binary(), kind);
  const std::vector<std::pair<Tensor, v1::Compare::Direction>> compare = {
      {Equal(x, x), v1::Compare::DIRECTION_EQ},   {NotEqual(x, x), v1::Compare::DIRECTION_NE},
      {Less(x, x), v1::Compare::DIRECTION_LT},    {LessEqual(x, x), v1::Compare::DIRECTION_LE},
      {Greater(x, x), v1::Compare::DIRECTION_GT}, {GreaterEqual(x, x), v1::Compare::DIRECTION_GE}};
  for (const auto& [tensor, direction] : compare) EXPECT_EQ(tensor.expression()->op.compare().direction(), direction);
}

TEST(Elementwise, SelectAndClampKeepScalarsAsTheyAre) {
  const Tensor x = Input({2, 3});
  EXPECT_EQ(TracedText({Clamp(0.0, x, Input({3}))}),
            "x0 = input f32[2,3]\n"
            "x1 = input f32[3]\n"
            "n0 = () constant { value { dtype: DTYPE_F32 order: MEMORY_ORDER_ROW_MAJOR data: "
            "\"\\000\\000\\000\\000\" } }\n"
            "n1 = (x1) broadcast_in_dim { shape { size: 2 } shape { size: 3 } broadcast_dimensions: 1 }\n"
            "n2 = (n0, x0, n1) clamp { }\n"
            "y0 = n2\n");
  const Tensor scalar_choice = Select(Input<bool>({}), x, x);
  EXPECT_EQ(scalar_choice.expression()->operands[0]->shape, Shape{});
  EXPECT_THAT(Select(Input<bool>({4, 1, 1}), x, 0.0).shape(), ElementsAre(4, 2, 3));
  EXPECT_THAT(LastOp(Select(x, x, x)), HasSubstr("must be bool: f32"));
}

TEST(Structural, InfersShapes) {
  const Tensor x = Input({2, 3, 4});
  EXPECT_THAT(Transpose(x).shape(), ElementsAre(4, 3, 2));
  EXPECT_THAT(Transpose(x, {1, -1, 0}).shape(), ElementsAre(3, 4, 2));
  EXPECT_THAT(Transpose(Input({})).shape(), IsEmpty());
  EXPECT_THAT(ExpandDims(x, {0, -1}).shape(), ElementsAre(1, 2, 3, 4, 1));
  EXPECT_THAT(Squeeze(Input({1, 3, 1}), {0, -1}).shape(), ElementsAre(3));
  EXPECT_THAT(BroadcastTo(Input({3, 1}), {2, 3, 4}).shape(), ElementsAre(2, 3, 4));
  EXPECT_THAT(Concatenate({x, Input({2, 0, 4}), x}, -2).shape(), ElementsAre(2, 6, 4));
  EXPECT_THAT(Slice(x, {0, 1, 0}, {2, 3, 4}, {1, 1, 3}).shape(), ElementsAre(2, 2, 2));
  EXPECT_THAT(Pad(x, 0, {1, 0, -1}, {0, 2, 0}, {0, 1, 0}).shape(), ElementsAre(3, 7, 3));
  EXPECT_THAT(Pad(Input({0}), 0, {2}, {1}, {5}).shape(), ElementsAre(3));
  EXPECT_THAT(ExtractDiag(Input({5, 3, 5}), 0, 2).shape(), ElementsAre(5, 3));
  EXPECT_THAT(EmbedDiag(Input({5, 3}), 0, -1).shape(), ElementsAre(5, 3, 5));
  EXPECT_THAT(Iota(DType::kI64, {2, 3}, -1).shape(), ElementsAre(2, 3));
  EXPECT_THAT(Full({2, 2}, 1.0, DType::kF16).shape(), ElementsAre(2, 2));
  EXPECT_THAT(Reverse(x, {-1}).shape(), ElementsAre(2, 3, 4));
}

TEST(Structural, TracesAttributes) {
  const Tensor x = Input({2, 3});
  EXPECT_EQ(LastOp(Transpose(x)), "transpose { permutation: 1 permutation: 0 }");
  EXPECT_EQ(LastOp(Reshape(x, {3, -1})),
            "reshape { shape { size: 3 } shape { size: 2 } order: MEMORY_ORDER_ROW_MAJOR }");
  EXPECT_EQ(LastOp(Reshape(x, {6}, MemoryOrder::kColumnMajor)),
            "reshape { shape { size: 6 } order: MEMORY_ORDER_COLUMN_MAJOR }");
  EXPECT_EQ(LastOp(Slice(x, {0, 1}, {2, 3})),
            "slice { start_indices: 0 start_indices: 1 limit_indices: 2 limit_indices: 3 }");
  EXPECT_EQ(LastOp(Pad(x, 1, {1, 0}, {0, 0})),
            "pad { edge_padding_low: 1 edge_padding_low: 0 edge_padding_high: 0 edge_padding_high: 0 }");
  EXPECT_EQ(LastOp(Concatenate({x, x}, 1)), "concatenate { dimension: 1 }");
  EXPECT_EQ(LastOp(Reverse(x, {-1})), "reverse { dimensions: 1 }");
  EXPECT_EQ(LastOp(Tril(x, -1)), "tril { diagonal: -1 }");
  EXPECT_EQ(LastOp(Triu(x, 2)), "triu { diagonal: 2 }");
  EXPECT_EQ(LastOp(Iota(DType::kI32, {4})), "iota { type { dtype: DTYPE_I32 shape { size: 4 } } }");
}

TEST(Structural, RefusesWhatCannotBe) {
  const Tensor x = Input({2, 3});
  EXPECT_EQ(LastOp(Reshape(x, {4})), "Reshape: shapes have different element counts: [2,3] to [4]");
  EXPECT_FALSE(Reshape(x, {-1, -1}).ok());
  EXPECT_FALSE(Reshape(x, {4, -1}).ok());
  EXPECT_FALSE(Reshape(Input({0, 2}), {0, -1}).ok());
  EXPECT_THAT(Reshape(Input({0, 2}), {-1, 2}).shape(), ElementsAre(0, 2));
  EXPECT_THAT(Reshape(Input({1}), {}).shape(), IsEmpty());
  EXPECT_FALSE(Transpose(x, {0}).ok());
  EXPECT_FALSE(Transpose(x, {0, 0}).ok());
  EXPECT_FALSE(Squeeze(x, {0}).ok());
  EXPECT_FALSE(BroadcastTo(x, {3}).ok());
  EXPECT_FALSE(BroadcastTo(x, {2, 4}).ok());
  EXPECT_FALSE(BroadcastTo(Input({1}), {-1}).ok());
  EXPECT_FALSE(BroadcastInDim(x, {2, 3}, {0}).ok());
  EXPECT_FALSE(Concatenate({}).ok());
  EXPECT_FALSE(Concatenate({x, Input({2, 3, 1})}, 0).ok());
  EXPECT_FALSE(Concatenate({Input({}), Input({})}).ok());
  EXPECT_FALSE(Slice(x, {0, 0}, {2, 4}).ok());
  EXPECT_FALSE(Slice(x, {0, 2}, {2, 1}).ok());
  EXPECT_FALSE(Slice(x, {0, 0}, {2, 3}, {1, 0}).ok());
  EXPECT_FALSE(Slice(x, {0}, {2}).ok());
  EXPECT_FALSE(Pad(x, 0, {-2, 0}, {-1, 0}).ok());
  EXPECT_FALSE(Pad(x, 0, {INT64_MAX, 0}, {INT64_MAX, 0}).ok());
  EXPECT_FALSE(Pad(x, 0, {0, 0}, {0, 0}, {-1, 0}).ok());
  EXPECT_FALSE(ExtractDiag(x).ok());
  EXPECT_FALSE(EmbedDiag(x, 2, 0).ok());
  EXPECT_FALSE(Tril(Input({3})).ok());
  EXPECT_FALSE(Iota(DType::kI32, {}).ok());
  EXPECT_FALSE(Iota(DType::kI32, {-1}).ok());
}

TEST(Reduction, TracesAxesAndKeepsThemWhereAsked) {
  const Tensor x = Input({2, 3, 4});
  EXPECT_EQ(LastOp(Sum(x)), "reduce { kind: KIND_SUM dimensions: 0 dimensions: 1 dimensions: 2 }");
  EXPECT_EQ(LastOp(Max(x, {-1})), "reduce { kind: KIND_MAX dimensions: 2 }");
  EXPECT_EQ(LastOp(Min(x, {})), "reduce { kind: KIND_MIN }");
  EXPECT_THAT(Min(x, {}).shape(), ElementsAre(2, 3, 4));
  EXPECT_THAT(Product(x, {0, 2}).shape(), ElementsAre(3));
  EXPECT_THAT(Sum(x, {1}, /*keep_dims=*/true).shape(), ElementsAre(2, 1, 4));
  EXPECT_EQ(LastOp(All(Input<bool>({2}))), "reduce { kind: KIND_AND dimensions: 0 }");
  EXPECT_EQ(LastOp(Any(Input<bool>({2}))), "reduce { kind: KIND_OR dimensions: 0 }");
  EXPECT_FALSE(Sum(x, {3}).ok());
  EXPECT_FALSE(Sum(x, {0, -3}).ok());
}

TEST(Reduction, MeanSumsHalvesInSinglePrecision) {
  EXPECT_THAT(TracedText({Mean(Input<Half>({2, 8}), {1})}),
              HasSubstr("n0 = (x0) convert { dtype: DTYPE_F32 }\nn1 = (n0) reduce { kind: KIND_SUM dimensions: 1 }\n"));
  EXPECT_EQ(Mean(Input<Half>({2, 8})).dtype(), DType::kF16);
  // 8 as F32.
  EXPECT_THAT(TracedText({Mean(Input({2, 8}), {1})}), HasSubstr("data: \"\\000\\000\\000A\""));
  EXPECT_THAT(LastOp(Mean(Input<int32_t>({2}))), HasSubstr("convert it: i32"));
}

TEST(Contraction, MatMulFollowsNumpy) {
  const auto shape = [](Shape a, Shape b) { return MatMul(Input(std::move(a)), Input(std::move(b))).shape(); };
  EXPECT_THAT(shape({2, 3}, {3, 4}), ElementsAre(2, 4));
  EXPECT_THAT(shape({3}, {3, 4}), ElementsAre(4));
  EXPECT_THAT(shape({2, 3}, {3}), ElementsAre(2));
  EXPECT_THAT(shape({3}, {3}), IsEmpty());
  EXPECT_THAT(shape({5, 2, 3}, {3, 4}), ElementsAre(5, 2, 4));
  EXPECT_THAT(shape({2, 3}, {5, 3, 4}), ElementsAre(5, 2, 4));
  EXPECT_THAT(shape({2, 3}, {6, 5, 3, 4}), ElementsAre(6, 5, 2, 4));
  EXPECT_THAT(shape({5, 2, 3}, {5, 3, 4}), ElementsAre(5, 2, 4));
  EXPECT_THAT(shape({6, 1, 2, 3}, {5, 3, 4}), ElementsAre(6, 5, 2, 4));
  EXPECT_THAT(shape({3}, {5, 3, 4}), ElementsAre(5, 4));
  EXPECT_THAT(shape({5, 2, 3}, {3}), ElementsAre(5, 2));
  EXPECT_FALSE(MatMul(Input({2, 3}), Input({2, 3})).ok());
  EXPECT_FALSE(MatMul(Input({}), Input({2})).ok());
  EXPECT_FALSE(MatMul(Input({4, 2, 3}), Input({5, 3, 4})).ok());
}

TEST(Contraction, BatchesAreMovedToTheFront) {
  EXPECT_EQ(TracedText({MatMul(Input({5, 2, 3}), Input({5, 3, 4}))}),
            "x0 = input f32[5,2,3]\n"
            "x1 = input f32[5,3,4]\n"
            "n0 = (x0, x1) dot_general { lhs_contracting_dimensions: 2 rhs_contracting_dimensions: 1 "
            "lhs_batching_dimensions: 0 rhs_batching_dimensions: 0 }\n"
            "n1 = (n0) transpose { permutation: 2 permutation: 0 permutation: 1 }\n"
            "y0 = n1\n");
  EXPECT_THAT(TracedText({MatMul(Input({2, 3}), Input({6, 5, 3, 4}))}),
              HasSubstr("transpose { permutation: 1 permutation: 2 permutation: 0 permutation: 3 }"));
}

TEST(Contraction, ProductsCarryTheirAlgebra) {
  for (const Shape& shape : {Shape{2, 2}, Shape{2}, Shape{5, 2, 2}}) {
    EXPECT_THAT(TracedText({MatMul(Input(shape), Input({2, 2}), Algebra::kMinPlus)}),
                HasSubstr("algebra: ALGEBRA_MIN_PLUS"));
    EXPECT_THAT(TracedText({MatMul(Input({2, 2}), Input(shape), Algebra::kMaxTimes)}),
                HasSubstr("algebra: ALGEBRA_MAX_TIMES"));
    EXPECT_THAT(TracedText({MatMul(Input(shape), Input({2, 2}))}), testing::Not(HasSubstr("algebra")));
  }
  EXPECT_THAT(TracedText({MatMul(Input({5, 2, 2}), Input({5, 2, 2}), Algebra::kMaxPlus)}),
              HasSubstr("algebra: ALGEBRA_MAX_PLUS"));
}

TEST(Contraction, DotGeneralPutsBatchLast) {
  const Tensor dot = DotGeneral(
      Input({7, 2, 3}), Input({3, 7, 4}),
      {.lhs_contracting = {2}, .rhs_contracting = {0}, .lhs_batching = {0}, .rhs_batching = {1}}, DType::kF64);
  EXPECT_THAT(dot.shape(), ElementsAre(2, 4, 7));
  EXPECT_EQ(dot.dtype(), DType::kF64);
  EXPECT_THAT(LastOp(dot), HasSubstr("result_dtype: DTYPE_F64"));
  EXPECT_FALSE(DotGeneral(Input({2}), Input({3}), {.lhs_contracting = {0}, .rhs_contracting = {0}}).ok());
  EXPECT_FALSE(DotGeneral(Input({2}), Input({2}), {.lhs_contracting = {0}}).ok());
  EXPECT_FALSE(DotGeneral(Input({2}), Input({2}),
                          {.lhs_contracting = {0}, .rhs_contracting = {0}, .lhs_batching = {0}, .rhs_batching = {0}})
                   .ok());
}

}  // namespace
}  // namespace tensord::client
