#include "tensord/host_tensor.h"

#include <complex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;

TEST(HostTensor, FromVectorTakesTheElementsWithoutACopy) {
  std::vector<float> values(64, 1.5f);
  const float* const data = values.data();
  const HostTensor tensor = *HostTensor::FromVector(std::move(values), {8, 8});
  EXPECT_EQ(tensor.Values<float>()->data(), data);
  EXPECT_EQ(tensor.dtype(), DType::kF32);
  EXPECT_EQ(tensor.size_bytes(), 256u);
  const HostTensor copy = tensor;
  EXPECT_EQ(copy.bytes(), tensor.bytes());
}

TEST(HostTensor, TakesVectorsOfBool) {
  const HostTensor tensor = *HostTensor::FromVector(std::vector<bool>{true, false, true}, {3});
  EXPECT_THAT(*tensor.Values<bool>(), ElementsAre(true, false, true));
}

TEST(HostTensor, TakesEmptyTensorsAndScalars) {
  EXPECT_EQ(HostTensor::FromVector(std::vector<int64_t>{}, {0, 5})->element_count(), 0);
  EXPECT_THAT(*HostTensor::Scalar(std::complex<double>(1, 2)).Values<std::complex<double>>(),
              ElementsAre(std::complex<double>(1, 2)));
  EXPECT_TRUE(HostTensor().Values<float>()->empty());
}

TEST(HostTensor, RefusesBytesThatDoNotFit) {
  EXPECT_FALSE(HostTensor::FromVector(std::vector<float>{1, 2}, {3}).ok());
  EXPECT_FALSE(HostTensor::FromVector(std::vector<float>{1, 2}, {-2}).ok());
  EXPECT_FALSE(HostTensor::FromBytes(DType::kF64, {1}, MemoryOrder::kRowMajor, "1234567").ok());
  EXPECT_FALSE(HostTensor::FromBytes(DType::kC128, {int64_t{1} << 60}, MemoryOrder::kRowMajor, "").ok());
  EXPECT_FALSE(HostTensor::FromBytes(DType::kBool, {2}, MemoryOrder::kRowMajor, std::string("\x01\x02")).ok());
}

TEST(HostTensor, AlignsWhatIsNot) {
  auto owner = std::make_shared<const std::string>(17, '\0');
  std::shared_ptr<const char> odd(owner, owner->data() + 1);
  const HostTensor tensor = *HostTensor::FromBuffer(DType::kF64, {2}, MemoryOrder::kRowMajor, odd, 16);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes()) % alignof(double), 0u);
  EXPECT_THAT(*tensor.Values<double>(), ElementsAre(0.0, 0.0));
}

TEST(HostTensor, ValuesAreRefusedAsAnotherDType) {
  const auto values = HostTensor::Scalar(1.0f).Values<double>();
  EXPECT_EQ(values.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HostTensor, ChangesOrderInBothDirections) {
  const HostTensor row_major = *HostTensor::FromVector(std::vector<int32_t>{1, 2, 3, 4, 5, 6}, {2, 3});
  const HostTensor column_major = row_major.InOrder(MemoryOrder::kColumnMajor);
  EXPECT_EQ(column_major.order(), MemoryOrder::kColumnMajor);
  EXPECT_THAT(*column_major.Values<int32_t>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(*column_major.InOrder(MemoryOrder::kRowMajor).Values<int32_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(row_major.InOrder(MemoryOrder::kRowMajor).bytes(), row_major.bytes());
}

TEST(HostTensor, ABufferThatIsNoneIsRefused) {
  const auto of = [](int64_t size) {
    return HostTensor::FromBuffer(DType::kF32, {size}, MemoryOrder::kRowMajor, nullptr, static_cast<size_t>(size) * 4);
  };
  EXPECT_EQ(of(1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(of(0).ok()) << "nothing is read of it";
}

template <typename T>
void ExpectRankThreeReorder() {
  std::vector<T> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(static_cast<int>(i));
  const HostTensor row_major = *HostTensor::FromVector(values, {2, 3, 4});
  const HostTensor column_major = row_major.InOrder(MemoryOrder::kColumnMajor);
  const auto elements = *column_major.Values<T>();
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      for (size_t k = 0; k < 4; ++k) EXPECT_EQ(elements[i + 2 * (j + 3 * k)], values[(i * 3 + j) * 4 + k]);
    }
  }
  EXPECT_EQ(*column_major.InOrder(MemoryOrder::kRowMajor).Values<T>(), absl::MakeConstSpan(values));
}

TEST(HostTensor, AnItemIsTheOnlyElement) {
  EXPECT_EQ(*HostTensor::Scalar(2.5).Item<double>(), 2.5);
  EXPECT_EQ(*HostTensor::FromVector<bool>({true}, {1, 1})->Item<bool>(), true);
  EXPECT_EQ(HostTensor::Scalar(2.5).Item<float>().status().message(),
            "values were asked for as another dtype: f32, tensor is f64");
  EXPECT_EQ(HostTensor::FromVector<int32_t>({1, 2}, {2, 1})->Item<int32_t>().status().message(),
            "the only element was asked for of a tensor of 2 elements: i32[2,1]");
  EXPECT_EQ(HostTensor().Item<float>().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HostTensor, AMovedFromTensorIsStillTheSame) {
  HostTensor tensor = *HostTensor::FromVector<int32_t>({1, 2}, {2});
  const HostTensor moved = std::move(tensor);
  EXPECT_EQ(tensor.shape(), Shape{2});  // NOLINT(bugprone-use-after-move): says so
  ASSERT_NE(tensor.bytes(), nullptr);
  EXPECT_EQ(tensor.bytes(), moved.bytes());
}

TEST(HostTensor, ChangesOrderOfElementsOfEverySize) {
  ExpectRankThreeReorder<int32_t>();
  ExpectRankThreeReorder<double>();
  ExpectRankThreeReorder<std::complex<double>>();
}

}  // namespace
}  // namespace tensord::client
