#include "backends/cpu/joins/tensor_box.h"

#include <vector>

#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

TEST(TensorBoxTest, LiesDenselyWithItsAxesInAnyOrder) {
  const Shape whole = {3, 4, 1, 5};
  const std::vector<AxisCut> cuts = {{.axis = 1, .parts = 2}};
  const TensorBox box(whole, cuts);
  EXPECT_EQ(box.sizes(), (Shape{3, 2, 1, 5}));
  EXPECT_EQ(box.StrideInBox(0), 0);  // of an axis that the tensor does not have
  EXPECT_EQ(box.StrideInBox(1), 1);
  EXPECT_EQ(box.StrideInBox(3), 3);
  EXPECT_EQ(box.StrideInBox(12), 6);
  const std::vector<size_t> order = {3, 1, 2, 0};
  const TensorBox turned(whole, cuts, order);
  EXPECT_EQ(turned.StrideInBox(1), 10);
  EXPECT_EQ(turned.StrideInBox(3), 5);
  EXPECT_EQ(turned.StrideInBox(12), 1);
}

}  // namespace
}  // namespace tensord::cpu
