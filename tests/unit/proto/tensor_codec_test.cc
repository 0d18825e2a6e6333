#include "proto/codec/tensor_codec.h"

#include <limits>
#include <random>
#include <string>

#include "engine/base/refusal.h"
#include "gtest/gtest.h"
#include "proto/codec/reverse_order.h"
#include "proto/codec/type_codec.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/reason_of.h"

namespace tensord::codec {
namespace {

v1::Tensor TensorOf(v1::DType dtype, std::initializer_list<int64_t> shape, std::string data) {
  v1::Tensor tensor;
  tensor.set_dtype(dtype);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  tensor.set_data(std::move(data));
  return tensor;
}

TEST(ReverseOrderTest, EveryElementGoesWhereItBelongs) {
  const Shape shapes[] = {
      {},     {5},         {3, 4},       {1, 7, 1},       {33, 65}, {2, 3, 4}, {64, 1, 40},
      {0, 3}, {31, 2, 33}, {2, 3, 1, 5}, {2, 3, 2, 3, 2}, {100, 3}, {3, 100},  {2, 2, 2, 2, 2, 2, 2}};
  for (const Shape& shape : shapes) {
    for (const int64_t size : {1, 2, 4, 8, 16}) {
      const size_t elements = static_cast<size_t>(*NumElements(shape)), bytes = elements * static_cast<size_t>(size);
      std::string from(bytes + 1, '\0'), to(bytes + 1, '\0');
      std::mt19937 random(1);
      for (char& c : from) c = static_cast<char>(random());
      // One byte off, as the wire's data may lie anywhere.
      ReverseOrder(shape, size, from.data() + 1, to.data() + 1);
      Shape index(shape.size());
      for (size_t i = 0; i < elements; ++i) {
        size_t reversed = 0;  // column-major place in the reversed shape: axis 0 is the slowest
        for (size_t k = 0; k < shape.size(); ++k)
          reversed = reversed * static_cast<size_t>(shape[k]) + static_cast<size_t>(index[k]);
        ASSERT_EQ(from.substr(1 + i * static_cast<size_t>(size), static_cast<size_t>(size)),
                  to.substr(1 + reversed * static_cast<size_t>(size), static_cast<size_t>(size)))
            << ToString(shape) << " element " << i;
        for (size_t k = 0; k < shape.size() && ++index[k] == shape[k]; ++k) index[k] = 0;
      }
    }
  }
}

TEST(TensorCodecTest, LiteralsComeBack) {
  std::mt19937_64 random(2);
  for (DType dtype : kAllDTypes) {
    const Literal literal = RandomLiteral({.dtype = dtype, .shape = {3, 5, 2}}, Values::kEdges, &random);
    const absl::StatusOr<Literal> again = DecodeLiteral(EncodeLiteral(literal), Order::kRowMajor, GraphLimits());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, literal) << Name(dtype);
  }
}

TEST(TensorCodecTest, RowMajorDataIsReordered) {
  v1::Tensor tensor = TensorOf(v1::DTYPE_BOOL, {2, 3}, std::string("\1\1\0\0\0\1", 6));
  const GraphLimits limits;
  EXPECT_EQ(DecodeLiteral(tensor, Order::kColumnMajor, limits)->bytes(), std::string("\1\1\0\0\0\1", 6));
  EXPECT_EQ(DecodeLiteral(tensor, Order::kRowMajor, limits)->bytes(), std::string("\1\0\1\0\0\1", 6));
  tensor.set_order(v1::MEMORY_ORDER_COLUMN_MAJOR);
  EXPECT_EQ(DecodeLiteral(tensor, Order::kRowMajor, limits)->bytes(), std::string("\1\1\0\0\0\1", 6));
  tensor.set_order(v1::MEMORY_ORDER_ROW_MAJOR);
  EXPECT_EQ(DecodeLiteral(tensor, Order::kColumnMajor, limits)->bytes(), std::string("\1\0\1\0\0\1", 6));
}

TEST(TensorCodecTest, TheHeaderSaysWhatTheDataMustHold) {
  const GraphLimits limits;
  const std::vector<int64_t> shape = {2, 3};
  const absl::StatusOr<TensorHeader> header =
      DecodeTensorHeader(v1::DTYPE_C64, shape, v1::MEMORY_ORDER_UNSPECIFIED, Order::kRowMajor, limits);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->type, (ConcreteType{.dtype = DType::kC64, .shape = {2, 3}}));
  EXPECT_EQ(header->order, Order::kRowMajor);
  EXPECT_EQ(header->num_bytes, 48);
  EXPECT_TRUE(CheckTensorData(*header, std::string(48, 'x')).ok());
  EXPECT_EQ(ReasonOf(CheckTensorData(*header, std::string(47, 'x'))), "DATA_LENGTH_MISMATCH");
  EXPECT_EQ(ReasonOf(CheckTensorData(*header, std::string(49, 'x'))), "DATA_LENGTH_MISMATCH");
}

TEST(TensorCodecTest, WrongHeadersAreRefused) {
  const GraphLimits limits;
  const auto reason = [&limits](int dtype, std::vector<int64_t> shape, int order = 0) {
    return ReasonOf(DecodeTensorHeader(static_cast<v1::DType>(dtype), shape, static_cast<v1::MemoryOrder>(order),
                                       Order::kColumnMajor, limits)
                        .status());
  };
  EXPECT_EQ(reason(v1::DTYPE_F32, {2}), "");
  EXPECT_EQ(reason(0, {2}), "DTYPE_UNSUPPORTED");
  EXPECT_EQ(reason(10, {2}), "DTYPE_UNSUPPORTED");
  EXPECT_EQ(reason(-1, {2}), "DTYPE_UNSUPPORTED");
  EXPECT_EQ(reason(v1::DTYPE_F32, {2}, 3), "ATTRIBUTE_INVALID");
  EXPECT_EQ(reason(v1::DTYPE_F32, {-2}), "SHAPE_OVERFLOW");
  EXPECT_EQ(reason(v1::DTYPE_F32, {std::numeric_limits<int64_t>::min()}), "SHAPE_OVERFLOW");
  EXPECT_EQ(reason(v1::DTYPE_F32, {1, 0, -1}), "SHAPE_OVERFLOW");
  EXPECT_EQ(reason(v1::DTYPE_F32, {int64_t{1} << 40, int64_t{1} << 40}), "SHAPE_OVERFLOW");
  EXPECT_EQ(reason(v1::DTYPE_F32, {int64_t{1} << 48}), "LIMIT_EXCEEDED");
  EXPECT_EQ(reason(v1::DTYPE_F32, {int64_t{1} << 33}), "LIMIT_EXCEEDED");
  EXPECT_EQ(reason(v1::DTYPE_F32, std::vector<int64_t>(33, 1)), "LIMIT_EXCEEDED");
  EXPECT_EQ(reason(v1::DTYPE_F32, std::vector<int64_t>(32, 1)), "");
}

TEST(TensorCodecTest, BoolsAreBits) {
  for (size_t length = 0; length < 40; ++length) {
    std::string data(length, '\1');
    EXPECT_TRUE(IsBoolData(data)) << length;
    for (size_t i = 0; i < length; ++i) {
      for (const int byte : {2, 3, 0x80, 0xff}) {
        data[i] = static_cast<char>(byte);
        EXPECT_FALSE(IsBoolData(data)) << i << " of " << length << ": " << byte;
      }
      data[i] = '\0';
      EXPECT_TRUE(IsBoolData(data)) << i << " of " << length;
    }
  }
  const v1::Tensor tensor = TensorOf(v1::DTYPE_BOOL, {2}, "\1\2");
  EXPECT_EQ(ReasonOf(DecodeLiteral(tensor, Order::kColumnMajor, GraphLimits()).status()), "DATA_INVALID");
}

TEST(TypeCodecTest, TypesComeBackAndUnknownSizesAreSaid) {
  TensorType type{.dtype = DType::kI64, .shape = {Dim(7), Dim(*ParseDimExpr("2*n + floordiv(m, 3)"))}};
  const GraphLimits limits;
  const absl::StatusOr<TensorType> again = DimExprDecoder(limits).DecodeType(EncodeType(type));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, type);
  type.shape[0].extent = Extent::kUpperBound;
  EXPECT_EQ(EncodeType(type).shape(0).symbol(), "?");
  EXPECT_FALSE(DimExprDecoder(limits).DecodeType(EncodeType(type)).ok());
}

TEST(TypeCodecTest, WorkOnSizesIsBounded) {
  // (a0 + 1)(a1 + 1)… as a balanced tree, again and again: few bytes, many terms.
  const GraphLimits limits{.expression_terms = 1'000};
  DimExprDecoder decoder(limits);
  absl::Status status;
  int expressions = 0;
  while (status.ok() && expressions < 100) {
    v1::DimExpr expr;
    expr.set_size(1);
    for (int i = 0; i < 5; ++i) {
      v1::DimExpr product;
      product.mutable_binary()->set_kind(v1::BinaryDimExpr::KIND_MULTIPLY);
      *product.mutable_binary()->mutable_lhs() = expr;
      v1::BinaryDimExpr& sum = *product.mutable_binary()->mutable_rhs()->mutable_binary();
      sum.set_kind(v1::BinaryDimExpr::KIND_ADD);
      sum.mutable_lhs()->set_symbol("a" + std::to_string(i));
      sum.mutable_rhs()->set_size(1);
      expr = product;
    }
    status = decoder.Decode(expr).status();
    ++expressions;
  }
  EXPECT_EQ(ReasonOf(status), "LIMIT_EXCEEDED");
  EXPECT_EQ(DetailOf(status)->limit, "expression_terms");
  EXPECT_GT(expressions, 2);
}

TEST(LimitsTest, EachHasAName) {
  const GraphLimits limits;
  std::string last;
  for (const GraphLimitInfo& info : AllGraphLimits()) {
    EXPECT_LT(last, std::string(info.name)) << "not in order";
    last = std::string(info.name);
    EXPECT_FALSE(info.doc.empty());
    const int64_t value = limits.*info.value;
    EXPECT_GT(value, 0);
    EXPECT_TRUE(CheckLimit(limits, info.value, value, "things").ok());
    const absl::Status status = CheckLimit(limits, info.value, value + 1, "things");
    EXPECT_EQ(DetailOf(status)->limit, info.name);
    EXPECT_EQ(DetailOf(status)->limit_value, value);
    EXPECT_EQ(DetailOf(status)->actual_value, value + 1);
  }
  EXPECT_EQ(AllGraphLimits().size() * sizeof(int64_t), sizeof(GraphLimits));
}

}  // namespace
}  // namespace tensord::codec
