#include "tensord/shape.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/host_tensor.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ElementCount, MultipliesDimensions) {
  EXPECT_EQ(*ElementCount({}), 1);
  EXPECT_EQ(*ElementCount({2, 3, 4}), 24);
  EXPECT_EQ(*ElementCount({2, 0, 4}), 0);
}

TEST(ElementCount, RefusesWhatNoTensorHas) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(ElementCount({-1, 2}).ok());
  EXPECT_FALSE(ElementCount({kHuge, 2}).ok());
  // The order of the dimensions does not matter.
  EXPECT_FALSE(ElementCount({0, kHuge, 2}).ok());
  EXPECT_FALSE(ElementCount({kHuge, 2, 0}).ok());
}

TEST(BroadcastShapes, AlignsAtTheLastAxis) {
  EXPECT_THAT(*BroadcastShapes("Add", {2, 1, 4}, {3, 1}), ElementsAre(2, 3, 4));
  EXPECT_THAT(*BroadcastShapes("Add", {}, {5}), ElementsAre(5));
  EXPECT_THAT(*BroadcastShapes("Add", {1}, {0}), ElementsAre(0));
  const auto refused = BroadcastShapes("Add", {2, 3}, {4});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("Add: shapes do not broadcast: [2,3] and [4]"));
}

TEST(NormalizeAxes, CountsFromTheEndAndRefusesRepeats) {
  EXPECT_THAT(*NormalizeAxes("Sum", {-1, 0}, 3), ElementsAre(2, 0));
  EXPECT_FALSE(NormalizeAxes("Sum", {3}, 3).ok());
  EXPECT_FALSE(NormalizeAxes("Sum", {-4}, 3).ok());
  EXPECT_FALSE(NormalizeAxes("Sum", {2, -1}, 3).ok());
  EXPECT_FALSE(NormalizeAxis("Sum", 0, 0).ok());
}

TEST(Shape, HasNoMoreAxesThanNumPyHas) {
  EXPECT_TRUE(ElementCount(Shape(kMostAxes, 1)).ok());
  EXPECT_EQ(ElementCount(Shape(kMostAxes + 1, 1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(HostTensor::FromBytes(DType::kF32, Shape(50'000, 1), MemoryOrder::kRowMajor, std::string(4, '\0')).ok());
}

}  // namespace
}  // namespace tensord::client
