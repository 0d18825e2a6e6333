#include "backends/cpu/linalg/blocked_triangular_solve.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "engine/base/stop_signal.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

// A system, in memory that is wider than its matrices. What is not read is NaN.
template <typename T>
class System {
 public:
  System(const lapack::Triangle& triangle, int64_t n, int64_t sides)
      : triangle_(triangle),
        n_(n),
        sides_(sides),
        ldb_((triangle.left ? n : sides) + 3),
        a_(static_cast<size_t>(lda() * n), NaN()),
        b_(static_cast<size_t>(ldb_ * (triangle.left ? sides : n)), NaN()) {
    std::mt19937 random(static_cast<uint32_t>(n * 1000 + sides));
    std::uniform_real_distribution<double> draw(-1, 1);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) {
        if (triangle.lower ? i < j : i > j) continue;
        const double diagonal = (j % 2 == 0 ? 1 : -1) * (1.5 + draw(random) / 2);
        if (i != j || !triangle.unit_diagonal)
          At(a_, lda(), i, j) = static_cast<T>(i == j ? diagonal : draw(random) / 8);
      }
    }
    for (int64_t side = 0; side < sides; ++side) {
      for (int64_t i = 0; i < n; ++i) Side(b_, i, side) = static_cast<T>(draw(random));
    }
  }

  // Solves it, and compares each side's residual with its bound.
  void Check() const {
    const auto solve = BlockedTriangularSolve<T>::Plan(triangle_, n_, sides_);
    ASSERT_TRUE(solve.has_value());
    std::vector<T> x = b_;
    solve->Run(a_.data(), lda(), sides_, x.data(), ldb_);
    for (int64_t side = 0; side < sides_; ++side) {
      for (int64_t i = 0; i < n_; ++i) {
        double residual = -double{Side(b_, i, side)}, size = std::abs(residual);
        for (int64_t k = 0; k < n_; ++k) {
          const double term = Element(i, k) * double{Side(x, k, side)};
          residual += term;
          size += std::abs(term);
        }
        ASSERT_LE(std::abs(residual), 2 * static_cast<double>(n_) * double{std::numeric_limits<T>::epsilon()} * size)
            << "row " << i << " of side " << side;
      }
    }
    for (size_t i = 0; i < b_.size(); ++i) ASSERT_EQ(std::isnan(x[i]), std::isnan(b_[i])) << "beside the sides";
  }

 private:
  static T NaN() { return std::numeric_limits<T>::quiet_NaN(); }
  template <typename Numbers>
  static auto& At(Numbers& numbers, int64_t leading, int64_t i, int64_t j) {
    return numbers[static_cast<size_t>(j * leading + i)];
  }
  template <typename Numbers>
  auto& Side(Numbers& numbers, int64_t i, int64_t side) const {
    return triangle_.left ? At(numbers, ldb_, i, side) : At(numbers, ldb_, side, i);
  }
  int64_t lda() const { return n_ + 2; }

  // Returns element (i, k) of the matrix that stands before a column of unknowns.
  double Element(int64_t i, int64_t k) const {
    if ((triangle_.transpose != CblasNoTrans) == triangle_.left) std::swap(i, k);
    if (triangle_.lower ? i < k : i > k) return 0;
    return i == k && triangle_.unit_diagonal ? 1 : double{At(a_, lda(), i, k)};
  }

  const lapack::Triangle triangle_;
  const int64_t n_, sides_, ldb_;
  std::vector<T> a_, b_;
};

template <typename T>
class BlockedTriangularSolveTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(BlockedTriangularSolveTest, Types);

// One block, several, and ragged ones; sides too.
TYPED_TEST(BlockedTriangularSolveTest, SolvesAllTriangles) {
  for (int flags = 0; flags < 8; ++flags) {
    for (const CBLAS_TRANSPOSE transpose : {CblasNoTrans, CblasTrans, CblasConjTrans}) {
      const lapack::Triangle triangle{.left = (flags & 1) != 0,
                                      .lower = (flags & 2) != 0,
                                      .transpose = transpose,
                                      .unit_diagonal = (flags & 4) != 0};
      for (const int64_t n : {32, 63, 64, 65, 150, 256}) {
        for (const int64_t sides : {16, 21, 64, 130}) {
          SCOPED_TRACE(testing::Message() << "flags " << flags << ", transpose " << transpose << ", " << n << " rows, "
                                          << sides << " sides");
          System<TypeParam>(triangle, n, sides).Check();
        }
      }
    }
  }
}

TYPED_TEST(BlockedTriangularSolveTest, LeavesSmallSystemsToBlas) {
  const lapack::Triangle triangle{.left = true, .lower = true, .transpose = CblasNoTrans, .unit_diagonal = false};
  EXPECT_FALSE(BlockedTriangularSolve<TypeParam>::Plan(triangle, 31, 100).has_value());
  EXPECT_FALSE(BlockedTriangularSolve<TypeParam>::Plan(triangle, 100, 15).has_value());
}

TYPED_TEST(BlockedTriangularSolveTest, AsksForEachBlockWhetherItsRunIsWanted) {
  const lapack::Triangle triangle{.left = false, .lower = true, .transpose = CblasNoTrans, .unit_diagonal = false};
  int64_t asks = 0;
  const StopSignal::Check count = [&] {
    ++asks;
    return absl::OkStatus();
  };
  StopSignal stop(count, std::chrono::nanoseconds(0));
  const StopSignal::Scope scope(&stop);
  System<TypeParam>(triangle, 256, 16).Check();
  EXPECT_GE(asks, 4);
}

}  // namespace
}  // namespace tensord::cpu
