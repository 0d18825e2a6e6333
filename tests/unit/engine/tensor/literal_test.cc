#include "engine/tensor/literal.h"

#include <limits>

#include "engine/base/refusal.h"
#include "engine/tensor/run_time_size.h"
#include "engine/tensor/tensor_type.h"
#include "gtest/gtest.h"
#include "tests/testlib/reason_of.h"

namespace tensord {
namespace {

TEST(ShapeTest, CountsWithoutOverflow) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({2, 3}), 6);
  EXPECT_EQ(NumElements({2, 0, 3}), 0);
  EXPECT_EQ(NumElements({int64_t{1} << 62}), int64_t{1} << 62);
  EXPECT_FALSE(NumElements({int64_t{1} << 32, int64_t{1} << 31}).has_value());
  EXPECT_FALSE(NumElements({-1}).has_value());
  EXPECT_FALSE(NumElements({0, -1}).has_value());
  // Strides of an empty tensor must fit as well.
  EXPECT_FALSE(NumElements({0, int64_t{1} << 32, int64_t{1} << 32}).has_value());
  EXPECT_EQ(NumBytes(DType::kC128, {3}), 48);
  EXPECT_FALSE(NumBytes(DType::kF64, {int64_t{1} << 60}).has_value());
}

TEST(ShapeTest, StridesAreColumnMajor) {
  EXPECT_EQ(ColumnMajorStrides({2, 3, 4}), (Shape{1, 2, 6}));
  EXPECT_EQ(ColumnMajorStrides({2, 0, 4}), (Shape{1, 2, 2}));
  EXPECT_EQ(ColumnMajorStrides({}), Shape());
}

TEST(DTypeTest, NamesAndSizes) {
  for (DType dtype : kAllDTypes) {
    EXPECT_EQ(DTypeFromName(Name(dtype)), dtype);
    VisitDType(dtype, [dtype]<typename T>(TypeTag<T>) {
      EXPECT_EQ(SizeOf(dtype), static_cast<int64_t>(sizeof(T)));
      EXPECT_EQ(kDTypeOf<T>, dtype);
    });
  }
  EXPECT_FALSE(DTypeFromName("invalid").has_value());
  EXPECT_FALSE(DTypeFromName("").has_value());
  EXPECT_EQ(RealPartOf(DType::kC128), DType::kF64);
  EXPECT_EQ(RealPartOf(DType::kI32), DType::kI32);
  EXPECT_EQ(ComplexOf(DType::kF32), DType::kC64);
  EXPECT_FALSE(ComplexOf(DType::kF16).has_value());
}

TEST(LiteralTest, IsZeroedAndOwnsItsBytes) {
  absl::StatusOr<Literal> literal = Literal::Create({.dtype = DType::kF64, .shape = {2, 3}});
  ASSERT_TRUE(literal.ok());
  EXPECT_EQ(literal->values<double>(), absl::Span<const double>({0, 0, 0, 0, 0, 0}));
  literal->mutable_values<double>()[5] = 1.5;
  const Literal copy = *literal;
  literal->mutable_values<double>()[5] = 2;
  EXPECT_EQ(copy.values<double>()[5], 1.5);
  EXPECT_FALSE(copy == *literal);
}

TEST(LiteralTest, DataMustHaveTheTypesLength) {
  EXPECT_EQ(ReasonOf(Literal::FromBytes({.dtype = DType::kI32, .shape = {2}}, "1234567").status()),
            "DATA_LENGTH_MISMATCH");
  EXPECT_TRUE(Literal::FromBytes({.dtype = DType::kI32, .shape = {2}}, "12345678").ok());
  EXPECT_TRUE(Literal::FromBytes({.dtype = DType::kI32, .shape = {0, 7}}, "").ok());
  EXPECT_EQ(ReasonOf(Literal::Create({.dtype = DType::kI32, .shape = {-1}}).status()), "SHAPE_OVERFLOW");
}

TEST(LiteralTest, EqualMeansTypeAndBits) {
  EXPECT_EQ(Literal::Scalar(1.0f), Literal::Scalar(1.0f));
  EXPECT_FALSE(Literal::Scalar(0.0f) == Literal::Scalar(-0.0f));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Literal::Scalar(nan), Literal::Scalar(nan));
  EXPECT_FALSE(Literal::Scalar(int32_t{0}) == Literal::Scalar(0.0f));
  EXPECT_FALSE(Literal::Scalar(1.0f) == Literal::Scalar(1.0f).WithShape({1}));
}

TEST(TensorTypeTest, TextOfTypes) {
  TensorType type{.dtype = DType::kBF16, .shape = {Dim(DimExpr::Symbol("n")), Dim(3)}};
  EXPECT_EQ(ToString(type), "bf16[n,3]");
  EXPECT_FALSE(type.is_static());
  const RunTimeBounds bounds = {{RunTimeSymbol("y"), DimExpr::Symbol("n")}};
  type.shape[0] = WithExtent(DimExpr::Symbol(RunTimeSymbol("y")), bounds);
  EXPECT_EQ(ToString(type), "bf16[?y<=n,3]");
  const ConcreteType concrete{.dtype = DType::kBool, .shape = {4, 5}};
  EXPECT_EQ(ToString(concrete), "bool[4,5]");
  EXPECT_EQ(ToConcreteType(ToTensorType(concrete)), concrete);
}

}  // namespace
}  // namespace tensord
