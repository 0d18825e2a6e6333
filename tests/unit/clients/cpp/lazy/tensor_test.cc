#include "tensord/tensor.h"

#include <complex>
#include <limits>
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

Tensor Ones(Shape shape) { return Input<float>(std::move(shape), 1.0f); }

TEST(Trace, SharedValuesStandInTheGraphOnce) {
  const Tensor x = Ones({2});
  const Tensor y = Exp(x);
  const Tensor z = y * y + x;
  EXPECT_EQ(TracedText({z, y, z}),
            "x0 = input f32[2]\n"
            "n0 = (x0) unary: UNARY_OP_EXP\n"
            "n1 = (n0, n0) binary: BINARY_OP_MULTIPLY\n"
            "n2 = (n1, x0) binary: BINARY_OP_ADD\n"
            "y0 = n2\n"
            "y1 = n0\n"
            "y2 = n2\n");
}

TEST(Trace, HostTensorsAreInputsAndConstantsAreNodes) {
  const Tensor x = Tensor::FromHost(HostTensor::Scalar(int32_t{7}));
  const Tensor constant = Tensor::Constant(*HostTensor::FromVector(std::vector<int32_t>{1}, {1}));
  const TracedGraph traced = *Trace({x, constant});
  ASSERT_EQ(traced.arguments.size(), 1u);
  EXPECT_EQ(traced.arguments[0].bytes(), x.expression()->host->bytes());
  ASSERT_EQ(traced.graph.nodes_size(), 1);
  EXPECT_EQ(traced.graph.nodes(0).constant().value().data(), std::string("\x01\x00\x00\x00", 4));
  EXPECT_EQ(traced.graph.nodes(0).constant().value().order(), v1::MEMORY_ORDER_ROW_MAJOR);
  EXPECT_EQ(traced.graph.outputs(0).value(), "x0");
}

TEST(Trace, EqualComputationsOverOtherValuesTraceToOneGraph) {
  const auto graph_of = [](float value) {
    const Tensor x = Tensor::FromVector<float>({value, value}, {2});
    return Trace({Sum(x * 2.0)})->graph.SerializeAsString();
  };
  EXPECT_EQ(graph_of(1), graph_of(5));
}

TEST(Trace, ChainsMayBeAsLongAsMemoryAllows) {
  constexpr int kLength = 300000;
  Tensor x = Ones({1});
  for (int i = 0; i < kLength; ++i) x = Negate(x);
  const TracedGraph traced = *Trace({x});
  EXPECT_EQ(traced.graph.nodes_size(), kLength);
  EXPECT_EQ(traced.graph.outputs(0).value(), traced.graph.nodes(kLength - 1).name());
  // The chain is freed here: recursion would overflow the stack.
}

TEST(Trace, DeepDiamondsAreLinear) {
  Tensor x = Ones({1});
  for (int i = 0; i < 2000; ++i) x = x + x;
  EXPECT_EQ(Trace({x})->graph.nodes_size(), 2000);
}

TEST(Trace, NoOutputsAreAnEmptyGraph) { EXPECT_EQ(TracedText({}), ""); }

TEST(Tensor, FailuresStickAndTheFirstComesOut) {
  const Tensor failed = Ones({2}) + Ones({3});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInvalidArgument);
  const Tensor later = Exp(MatMul(Reshape(failed, {-1, 1}), Ones({1, 1}))) + Tensor::Failed(absl::AbortedError("late"));
  EXPECT_EQ(TracedText({Ones({1}), later}), "Add: shapes do not broadcast: [2] and [3]");
  for (const Tensor& next : {Transpose(failed),
                             Sum(failed),
                             Mean(failed),
                             Concatenate({Ones({1}), failed}),
                             Clamp(0, failed, 1),
                             Select(failed, 1.0, Ones({1})),
                             Select(Equal(Ones({1}), 0.0), failed, 1.0),
                             BroadcastTo(failed, {9}),
                             Slice(failed, {0}, {1}),
                             Pad(Ones({1}), failed, {0}, {0}),
                             Take(Ones({1}), failed),
                             Tril(failed),
                             Convert(failed, DType::kF64),
                             Complex(Ones({1}), failed),
                             Full({2}, failed, DType::kF32),
                             Abs(failed),
                             DotGeneral(Ones({1}), failed, {}),
                             Scatter(Ones({1}), failed, Ones({1}), {}),
                             ExtractDiag(failed),
                             EmbedDiag(failed),
                             Squeeze(failed, {0}),
                             ExpandDims(failed, {0}),
                             Reverse(failed, {0})}) {
    EXPECT_EQ(Why(next), "Add: shapes do not broadcast: [2] and [3]");
  }
}

TEST(Tensor, LiteralsTakeTheOtherOperandsDType) {
  const auto constant_of = [](const Tensor& tensor) { return Trace({tensor})->graph.nodes(0).constant().value(); };
  EXPECT_EQ(constant_of(Ones({}) + 1.5).data(), std::string("\x00\x00\xc0\x3f", 4));
  EXPECT_EQ(constant_of(2 * Ones({})).data(), std::string("\x00\x00\x00\x40", 4));
  EXPECT_EQ(constant_of(Tensor::FromHost(HostTensor::Scalar(int64_t{1})) - 2).dtype(), v1::DTYPE_I64);
  EXPECT_EQ(constant_of(And(Tensor::FromHost(HostTensor::Scalar(true)), false)).data(), std::string(1, '\0'));
  EXPECT_EQ(constant_of(Tensor::FromHost(HostTensor::Scalar(Half{})) + 1.0).data(), std::string("\x00\x3c", 2));
  EXPECT_EQ(constant_of(Tensor::FromHost(HostTensor::Scalar(BFloat16{})) + 1).data(), std::string("\x80\x3f", 2));
  const Tensor complex = Tensor::FromHost(HostTensor::Scalar(std::complex<float>(1, 1)));
  EXPECT_EQ(constant_of(complex * std::complex<float>(0, 1)).dtype(), v1::DTYPE_C64);
  EXPECT_EQ(constant_of(complex * 3).data().size(), 8u);
}

TEST(Tensor, LiteralsThatDoNotFitAreRefused) {
  const Tensor i32 = Tensor::FromHost(HostTensor::Scalar(int32_t{1}));
  EXPECT_THAT(Why(i32 + 0.5), HasSubstr("Add: a literal does not go with the other operand's dtype: 0.5 and i32"));
  EXPECT_THAT(Why(i32 + (int64_t{1} << 31)), HasSubstr("2147483648 and i32"));
  EXPECT_TRUE((i32 + std::numeric_limits<int32_t>::min()).ok());
  EXPECT_THAT(Why(Ones({}) + true), HasSubstr("true and f32"));
  EXPECT_THAT(Why(Ones({}) + std::complex<double>(0, 1)), HasSubstr("and f32"));
  EXPECT_THAT(Why(Tensor::FromHost(HostTensor::Scalar(true)) + 1), HasSubstr("1 and bool"));
  EXPECT_THAT(Why(Maximum(1.0, 2.0)), HasSubstr("needs a tensor"));
}

TEST(Tensor, LiteralsNeverLoseTheirValueUnsaid) {
  const Tensor f16 = Tensor::FromHost(HostTensor::Scalar(Half{})), f64 = Tensor::FromHost(HostTensor::Scalar(1.0));
  const Tensor c64 = Tensor::FromHost(HostTensor::Scalar(std::complex<float>(1, 1)));
  EXPECT_THAT(Why(Ones({}) + 16777217), HasSubstr("16777217 and f32"));
  EXPECT_THAT(Why(f16 + 100000), HasSubstr("100000 and f16"));
  EXPECT_THAT(Why(f16 + 2049), HasSubstr("2049 and f16"));
  EXPECT_THAT(Why(Tensor::FromHost(HostTensor::Scalar(BFloat16{})) + 257), HasSubstr("257 and bf16"));
  EXPECT_THAT(Why(f64 + 9007199254740993), HasSubstr("9007199254740993 and f64"));
  EXPECT_THAT(Why(f64 + std::numeric_limits<int64_t>::max()), HasSubstr("9223372036854775807 and f64"));
  EXPECT_THAT(Why(c64 + 16777217), HasSubstr("16777217 and c64"));
  EXPECT_THAT(Why(Ones({}) + 1e300), HasSubstr("1e+300 and f32"));
  EXPECT_THAT(Why(f16 + 1e6), HasSubstr("1e+06 and f16"));
  EXPECT_THAT(Why(c64 + -1e300), HasSubstr("-1e+300 and c64"));
  EXPECT_THAT(Why(c64 + std::complex<double>(0, 1e300)), HasSubstr("and c64"));

  const double infinity = std::numeric_limits<double>::infinity();
  for (const Tensor& held :
       {Ones({}) + 16777216, Ones({}) + 16777217.0, Ones({}) + 0.1, Ones({}) + infinity, f16 + 65504, f16 + -infinity,
        f64 + 9007199254740992, f64 + std::numeric_limits<int64_t>::min(), c64 + infinity, c64 + 3,
        Ones({}) + std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(held.ok()) << held.status();
  }
}

TEST(Tensor, WhatFailedWithoutAReasonFailed) {
  EXPECT_FALSE(Tensor::Failed(absl::OkStatus()).ok());
  EXPECT_FALSE((Tensor::Failed(absl::OkStatus()) + 1).ok());
}

TEST(Tensor, WhatWasMovedFromIsStillThere) {
  Tensor x = Tensor::FromVector<float>({1, 2, 3}, {3});
  const Tensor y = std::move(x);
  EXPECT_EQ(x.rank(), 1);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE((x + y).ok());
  x = Tensor::FromVector<float>({1}, {1});
  EXPECT_EQ(y.shape(), Shape({3}));
}

TEST(Tensor, DTypesAreNotPromoted) {
  const Tensor f64 = Tensor::FromHost(HostTensor::Scalar(1.0));
  EXPECT_EQ(Why(Ones({2}) + f64), "Add: dtypes differ, and nothing is converted unasked: f32 and f64");
  EXPECT_EQ(Why(MatMul(Ones({2, 2}), BroadcastTo(f64, {2, 2}))),
            "DotGeneral: dtypes differ, and nothing is converted unasked: f32 and f64");
  EXPECT_FALSE(Concatenate({Ones({1}), BroadcastTo(f64, {1})}).ok());
  EXPECT_FALSE(Pad(Ones({1}), f64, {0}, {0}).ok());
  EXPECT_FALSE(Full({2}, f64, DType::kF32).ok());
}

TEST(Tensor, TooManyOrTooFewValuesAreAFailedTensor) {
  const Tensor failed = Tensor::FromVector<float>({1, 2, 3}, {2});
  const std::string place = absl::StrCat("; at tensor_test.cc:", __LINE__ - 1);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(failed.status().message()), ::testing::EndsWith(place));
  EXPECT_EQ(Exp(failed + 1).status(), failed.status()) << "the place is that of the first failure";
}

}  // namespace
}  // namespace tensord::client
