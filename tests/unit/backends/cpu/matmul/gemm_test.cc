#include "backends/cpu/matmul/gemm.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

// Large enough for pieces along each side. As one of very many, it is not cut into blocks.
constexpr int64_t kLeftRows = 1100, kRightColumns = 1000, kCommonTerms = 1200;
constexpr int64_t kManyCopies = 100000;

template <typename T>
class GemmTest : public testing::Test {};

using ProductDTypes = testing::Types<Bool, int32_t, int64_t, float, double, Complex64, Complex128>;
TYPED_TEST_SUITE(GemmTest, ProductDTypes);

template <typename T>
Gemm LargeGemm() {
  MatrixProduct product{.m = kLeftRows, .n = kRightColumns, .k = kCommonTerms};
  product.a = {.row_stride = 1, .column_stride = kLeftRows};
  product.b = {.row_stride = 1, .column_stride = kCommonTerms};
  product.c_column_stride = kLeftRows;
  return Gemm(kDTypeOf<T>, product, kManyCopies, /*sums=*/1);
}

// Some whole number that depends on both indices.
int64_t LeftAt(int64_t row, int64_t term) { return (row + term) % 2; }
int64_t RightAt(int64_t term, int64_t column) { return (term + column) % 3; }

template <typename T>
std::vector<T> Matrix(int64_t rows, int64_t columns, int64_t (*at)(int64_t, int64_t)) {
  std::vector<T> matrix;
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) matrix.push_back(static_cast<T>(at(i, j)));
  }
  return matrix;
}

TYPED_TEST(GemmTest, MultipliesInPieces) {
  using T = TypeParam;
  const Gemm gemm = LargeGemm<T>();
  ASSERT_EQ(gemm.num_blocks(), 1);
  const std::vector<T> a = Matrix<T>(kLeftRows, kCommonTerms, LeftAt),
                       b = Matrix<T>(kCommonTerms, kRightColumns, RightAt);
  std::vector<T> result(static_cast<size_t>(kLeftRows * kRightColumns));
  int64_t wanted[2][3] = {};  // by the indices' remainders
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t q = 0; q < kCommonTerms; ++q) wanted[i][j] += LeftAt(i, q) * RightAt(q, j);
    }
  }
  for (const int64_t times : {1, 2}) {
    gemm.RunCopies({}, a.data(), b.data(), result.data(), /*accumulates=*/times > 1);
    int64_t wrong = 0;
    for (int64_t j = 0; j < kRightColumns; ++j) {
      for (int64_t i = 0; i < kLeftRows; ++i) {
        wrong += result[static_cast<size_t>(i + j * kLeftRows)] != static_cast<T>(times * wanted[i % 2][j % 3]) ? 1 : 0;
      }
    }
    EXPECT_EQ(wrong, 0) << times;
  }
}

TYPED_TEST(GemmTest, StopsBetweenPieces) {
  using T = TypeParam;
  const Gemm gemm = LargeGemm<T>();
  const std::vector<T> a = Matrix<T>(kLeftRows, kCommonTerms, LeftAt),
                       b = Matrix<T>(kCommonTerms, kRightColumns, RightAt);
  std::vector<T> result(static_cast<size_t>(kLeftRows * kRightColumns));
  int64_t asks = 0;
  const StopSignal::Check check = [&asks] {
    ++asks;
    return asks < 2 ? absl::OkStatus() : Refuse(Refusal::kCancelled, "stopped");
  };
  StopSignal stop(check, std::chrono::nanoseconds(0));
  const StopSignal::Scope scope(&stop);
  gemm.RunCopies({}, a.data(), b.data(), result.data(), /*accumulates=*/false);
  EXPECT_EQ(asks, 2);
  EXPECT_EQ(result.back(), T());
}

}  // namespace
}  // namespace tensord::cpu
