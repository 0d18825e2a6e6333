#include "tensord/subscript.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/tensord.h"
#include "tests/unit/clients/cpp/lazy/client_tensors.h"
#include "tests/unit/clients/cpp/lazy/traced_text.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Subscripts, InferShapes) {
  const Tensor x = Input({4, 5, 6});
  EXPECT_THAT(x[0].shape(), ElementsAre(5, 6));
  EXPECT_THAT((x[-1][{kAll, 2}].shape()), ElementsAre(5));
  EXPECT_THAT((x[{Range(1, 3), kAll, 3}].shape()), ElementsAre(2, 5));
  EXPECT_THAT((x[{kRest, 3}].shape()), ElementsAre(4, 5));
  EXPECT_THAT((x[{kNewAxis, kRest, kNewAxis, 3}].shape()), ElementsAre(1, 4, 5, 1));
  EXPECT_THAT((x[{0, 0, 0}].shape()), IsEmpty());
  EXPECT_THAT((x[{0, 0, 0, kRest}].shape()), IsEmpty());
  EXPECT_THAT(x[{Range::Every(3)}].shape(), ElementsAre(2, 5, 6));
  EXPECT_THAT(x[Range::From(-3)].shape(), ElementsAre(3, 5, 6));
  EXPECT_THAT(x[Range::To(-3)].shape(), ElementsAre(1, 5, 6));
  EXPECT_THAT(x[Range(3, 1)].shape(), ElementsAre(0, 5, 6));
  EXPECT_THAT(x[Range(-100, 100)].shape(), ElementsAre(4, 5, 6));
  EXPECT_THAT(x[Range(100, std::nullopt, -2)].shape(), ElementsAre(2, 5, 6));
  EXPECT_THAT(x[Range(INT64_MAX, INT64_MIN, INT64_MIN)].shape(), ElementsAre(1, 5, 6));
  EXPECT_THAT(Input({0})[Range::Every(-1)].shape(), ElementsAre(0));
}

TEST(Subscripts, AreOneSliceAndAReversal) {
  EXPECT_EQ(
      TracedText({Input({4, 5})[{Range(3, 0, -2), 1}]}),
      "x0 = input f32[4,5]\n"
      "n0 = (x0) slice { start_indices: 1 start_indices: 1 limit_indices: 4 limit_indices: 2 strides: 2 strides: 1 "
      "}\n"
      "n1 = (n0) reverse { dimensions: 0 }\n"
      "n2 = (n1) reshape { shape { size: 2 } order: MEMORY_ORDER_ROW_MAJOR }\n"
      "y0 = n2\n");
  const Tensor x = Input({4, 5});
  EXPECT_EQ((x[{kAll, Range(0, 5)}].expression()), x.expression()) << "nothing is done for the whole";
}

TEST(Subscripts, Refuse) {
  const Tensor x = Input({4, 5});
  EXPECT_EQ(Why(x[4]), "operator[]: the index is out of bounds: 4, axis 0 of [4,5]");
  EXPECT_EQ(Why(x[{0, -6}]), "operator[]: the index is out of bounds: -6, axis 1 of [4,5]");
  EXPECT_EQ(Why(x[std::string::npos]), "operator[]: the index is out of bounds: 9223372036854775807, axis 0 of [4,5]");
  EXPECT_EQ(Why(x[{0, 0, 0}]), "operator[]: more subscripts than axes: 3, shape [4,5]");
  EXPECT_EQ(Why(x[{kRest, kRest}]), "operator[]: kRest stands once at most");
  EXPECT_EQ(Why(x[Range::Every(0)]), "operator[]: a step is 0");
  const Tensor open = Tensor::Parameter("p", DType::kF32, {Symbol("n"), 4});
  EXPECT_THAT(Why(open[0]), HasSubstr("takes ranges of step 1 and -1"));
  EXPECT_THAT(Why(open[Range::Every(2)]), HasSubstr("takes ranges of step 1 and -1"));
  EXPECT_EQ(Why(Tensor::Failed(absl::AbortedError("why"))[0]), "why");
}

TEST(Subscripts, OtherAxesMayHaveRunTimeSizes) {
  const Tensor open = Tensor::Parameter("p", DType::kF32, {Symbol("n"), 4});
  EXPECT_EQ(ShapeToString((open[{kAll, 1}]).shape()), "[n]");
  EXPECT_EQ(ShapeToString((open[{kAll, Range(0, 3, 2), kNewAxis}]).shape()), "[n,2,1]");
  EXPECT_EQ((open[{Range(1, -1), 0}]).shape(), Shape{kRunTimeSize});
  EXPECT_EQ((open[{Range::Every(-1), kAll}]).shape().back(), 4);
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ((open[{kAll, Range::Every(most)}]).shape().back(), 1);
  const Tensor large = Tensor::Parameter("p", DType::kF32, {Symbol("n"), most});
  EXPECT_EQ((large[{kAll, Range::From(1)}]).shape().back(), most - 1) << "nothing of its size is allocated";
}

TEST(Operators, CompareAndCombine) {
  const Tensor x = Input({2}), i = Input<int32_t>({2});
  const std::vector<std::pair<Tensor, v1::Compare::Direction>> compared = {
      {x == x, v1::Compare::DIRECTION_EQ}, {1 == x, v1::Compare::DIRECTION_EQ}, {x != 1.5, v1::Compare::DIRECTION_NE},
      {x < 2, v1::Compare::DIRECTION_LT},  {2 < x, v1::Compare::DIRECTION_LT},  {x <= x, v1::Compare::DIRECTION_LE},
      {x > x, v1::Compare::DIRECTION_GT},  {x >= 0, v1::Compare::DIRECTION_GE}};
  for (const auto& [tensor, direction] : compared) {
    EXPECT_EQ(static_cast<int>(tensor.expression()->op.compare().direction()), static_cast<int>(direction));
    EXPECT_TRUE(tensor.dtype() == DType::kBool);
  }
  EXPECT_EQ(static_cast<int>((i & 1).expression()->op.binary()), static_cast<int>(v1::BINARY_OP_AND));
  EXPECT_EQ(static_cast<int>((i | i).expression()->op.binary()), static_cast<int>(v1::BINARY_OP_OR));
  EXPECT_EQ(static_cast<int>((i ^ i).expression()->op.binary()), static_cast<int>(v1::BINARY_OP_XOR));
  EXPECT_EQ(static_cast<int>((~i).expression()->op.unary()), static_cast<int>(v1::UNARY_OP_NOT));
}

TEST(Operators, CompoundAssignmentLeavesOthersAsTheyAre) {
  Tensor x = Input({2});
  const Tensor before = x;
  x += 1;
  x *= before;
  x -= 2.5;
  x /= x;
  x %= 3;
  EXPECT_EQ(TracedText({before}), "x0 = input f32[2]\ny0 = x0\n");
  EXPECT_EQ(Trace({x})->graph.nodes_size(), 5 + 2 * 3) << "five operations, and three literals with their broadcasts";
}

TEST(Operators, CountsAreLiterals) {
  const std::vector<float> values = {1, 2};
  EXPECT_TRUE((Sum(Input({2})) / values.size()).ok());
  EXPECT_EQ(Why(Input<int64_t>({2}) + ~uint64_t{0}),
            "Add: a literal is beyond the other operand's dtype: 18446744073709551615 and i64");
  EXPECT_THAT(Sum(Input({2, 3}), 0).shape(), ElementsAre(3));
  EXPECT_THAT(Max(Input({2, 3}), -1, /*keep_dims=*/true).shape(), ElementsAre(2, 1));
  EXPECT_THAT(ExpandDims(Input({2}), 0).shape(), ElementsAre(1, 2));
}

TEST(Tensor, MadeWithoutAValueIsAFailedTensor) {
  Tensor x;
  EXPECT_EQ(x.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(x.rank(), 0);
  EXPECT_FALSE(Exp(x).ok());
  x = Input({2});
  EXPECT_TRUE(x.ok());
}

}  // namespace
}  // namespace tensord::client
