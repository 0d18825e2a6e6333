#include "tensord/eigen.h"

#include <complex>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::client {
namespace {

TEST(Eigen, AMapReadsBothOrdersWhereTheyLie) {
  const HostTensor rows = *HostTensor::FromVector(std::vector<double>{0, 1, 2, 3, 4, 5}, {2, 3});
  for (const HostTensor& tensor : {rows, rows.InOrder(MemoryOrder::kColumnMajor)}) {
    const absl::StatusOr<EigenMap<double>> map = AsEigen<double>(tensor);
    ASSERT_TRUE(map.ok()) << map.status();
    EXPECT_EQ(map->rows(), 2);
    EXPECT_EQ(map->cols(), 3);
    EXPECT_EQ((*map)(0, 2), 2);
    EXPECT_EQ((*map)(1, 0), 3);
    EXPECT_EQ(static_cast<const void*>(map->data()), tensor.bytes());
  }
}

TEST(Eigen, AVectorIsAColumn) {
  const HostTensor tensor = *HostTensor::FromVector(std::vector<float>{1, 2, 3}, {3});
  const absl::StatusOr<EigenMap<float>> map = AsEigen<float>(tensor);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->cols(), 1);
  EXPECT_EQ(map->sum(), 6.0f);
}

TEST(Eigen, RefusesOtherRanksAndDTypes) {
  EXPECT_FALSE(AsEigen<float>(HostTensor::Scalar(1.0f)).ok());
  EXPECT_FALSE(AsEigen<float>(*HostTensor::FromVector(std::vector<float>{1}, {1, 1, 1})).ok());
  EXPECT_FALSE(AsEigen<double>(*HostTensor::FromVector(std::vector<float>{1}, {1, 1})).ok());
}

TEST(Eigen, MatricesAndExpressionsBecomeTensors) {
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> matrix(2, 3);
  matrix << 0, 1, 2, 3, 4, 5;
  const absl::StatusOr<HostTensor> tensor = FromEigen(matrix);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->shape(), (Shape{2, 3}));
  EXPECT_TRUE((*AsEigen<double>(*tensor)).isApprox(matrix));
  const absl::StatusOr<HostTensor> product = FromEigen(matrix * matrix.transpose());
  ASSERT_TRUE(product.ok());
  EXPECT_TRUE((*AsEigen<double>(*product)).isApprox(matrix * matrix.transpose()));

  const Eigen::Vector3cd vector(std::complex<double>(1, 2), 3, 4);
  const absl::StatusOr<HostTensor> column = FromEigen(vector);
  ASSERT_TRUE(column.ok());
  EXPECT_EQ(column->dtype(), DType::kC128);
  EXPECT_EQ(column->shape(), Shape{3});
  EXPECT_EQ(FromEigen(Eigen::ArrayXf(0))->shape(), Shape{0});
}

}  // namespace
}  // namespace tensord::client
