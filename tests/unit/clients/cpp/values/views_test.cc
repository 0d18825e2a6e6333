#include "tensord/views.h"

#include <span>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::client {
namespace {

TEST(Views, ASpanSeesTheElementsWhereTheyLie) {
  const HostTensor tensor = *HostTensor::FromVector(std::vector<float>{1, 2, 3}, {3});
  const absl::StatusOr<std::span<const float>> span = AsSpan<float>(tensor);
  ASSERT_TRUE(span.ok());
  EXPECT_EQ(static_cast<const void*>(span->data()), tensor.bytes());
  EXPECT_EQ(span->size(), 3u);
  EXPECT_EQ(AsSpan<double>(tensor).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Views, CopiesFromAPointerAndSizes) {
  double values[] = {1, 2, 3, 4, 5, 6};
  const absl::StatusOr<HostTensor> copy = CopyOf(values, {2, 3});
  ASSERT_TRUE(copy.ok()) << copy.status();
  values[0] = 9;
  EXPECT_EQ((*copy->Values<double>())[0], 1);
  EXPECT_EQ(copy->shape(), (Shape{2, 3}));
  EXPECT_FALSE(CopyOf(std::span<const double>(values), {2, 2}).ok()) << "six elements are no four";
  EXPECT_EQ(CopyOf<double>(nullptr, {1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(CopyOf<double>(nullptr, {0}).ok());
  EXPECT_FALSE(CopyOf(values, {-1}).ok());
}

#if defined(__cpp_lib_mdspan)
TEST(Views, AnMdspanReadsBothOrders) {
  const HostTensor rows = *HostTensor::FromVector(std::vector<int64_t>{0, 1, 2, 3, 4, 5}, {2, 3});
  for (const HostTensor& tensor : {rows, rows.InOrder(MemoryOrder::kColumnMajor)}) {
    const auto view = AsMdspan<int64_t, 2>(tensor);
    ASSERT_TRUE(view.ok());
    EXPECT_EQ(((*view)[1, 2]), 5);
    EXPECT_EQ(((*view)[0, 1]), 1);
  }
  EXPECT_FALSE((AsMdspan<int64_t, 1>(rows).ok()));
}
#endif

}  // namespace
}  // namespace tensord::client
