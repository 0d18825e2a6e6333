#include "backends/cpu/contraction/lane_product.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/sample_values.h"

namespace tensord::cpu {
namespace {

// Batch, rows, columns and terms along one axis each, the operands with gaps and with their axes in any order.
DotSpace SpaceOf(int64_t batch, int64_t rows, int64_t columns, int64_t terms) {
  DotSpace space;
  space.roles[kBatch] = {{batch, {terms * 2, 3, 1}}};
  space.roles[kRows] = {{rows, {batch * terms * 2, 0, batch}}};
  space.roles[kColumns] = {{columns, {0, batch * 3, batch * rows}}};
  space.roles[kSummed] = {{terms, {2, batch * columns * 3, 0}}};
  return space;
}

template <typename T>
void ExpectFusedSums(int64_t batch, int64_t rows, int64_t columns, int64_t terms) {
  const DType dtype = sizeof(T) == 4 ? DType::kF32 : DType::kF64;
  const DotSpace space = SpaceOf(batch, rows, columns, terms);
  const std::optional<LaneProduct> planned = LaneProduct::Plan(space, dtype);
  if (!planned.has_value()) return;
  const LaneProduct& product = *planned;
  const std::vector<T> lhs = SampleValues<T>(batch * rows * terms * 2, 1);
  const std::vector<T> rhs = SampleValues<T>(batch * columns * terms * 3, 2);
  const int64_t elements = batch * rows * columns;
  std::vector<char> scratch(static_cast<size_t>(product.scratch_bytes()) + 64);
  char* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  std::vector<T> result(static_cast<size_t>(elements) + 1, T(7));
  product.Run(reinterpret_cast<const char*>(lhs.data()), reinterpret_cast<const char*>(rhs.data()),
              reinterpret_cast<char*>(result.data()), aligned);
  const auto at = [](const std::vector<T>& x, int64_t i) { return x[static_cast<size_t>(i)]; };
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t b = i % batch, row = i / batch % rows, column = i / batch / rows;
    T sum = 0;
    for (int64_t t = 0; t < terms; ++t) {
      sum = std::fma(at(lhs, (b + row * batch) * terms * 2 + t * 2), at(rhs, (b + (column + t * columns) * batch) * 3),
                     sum);
    }
    ASSERT_TRUE(Agree(at(result, i), sum, 0)) << "element " << i << " of " << batch << " " << rows << " x " << columns;
  }
  EXPECT_EQ(result.back(), T(7));
}

TEST(LaneProductTest, SumsAreFusedInTheOrderOfTheirTerms) {
  ForEachInstructionSet([](const std::string&) {
    for (const int64_t batch : {16, 17, 31, 64, 243}) {
      for (const int64_t terms : {1, 3, 16}) {
        for (int64_t rows = 1; rows <= 7; ++rows) {
          for (const int64_t columns : {1, 2, 3, 5, 6}) {
            ExpectFusedSums<double>(batch, rows, columns, terms);
            ExpectFusedSums<float>(batch, rows, columns, terms);
          }
        }
      }
    }
  });
}

TEST(LaneProductTest, TakesSmallMatricesWhoseBatchLiesTogether) {
  if (GetLaneProductLoop(DType::kF64) == nullptr) GTEST_SKIP() << "the machine has no loops";
  EXPECT_TRUE(LaneProduct::Plan(SpaceOf(64, 3, 3, 3), DType::kF64).has_value());
  EXPECT_FALSE(LaneProduct::Plan(SpaceOf(64, 3, 3, 3), DType::kI32).has_value());
  EXPECT_FALSE(LaneProduct::Plan(SpaceOf(8, 3, 3, 3), DType::kF64).has_value());
  EXPECT_FALSE(LaneProduct::Plan(SpaceOf(64, 3, 3, 32), DType::kF64).has_value());
  EXPECT_FALSE(LaneProduct::Plan(SpaceOf(64, 1, 1, 3), DType::kF64).has_value());
  EXPECT_FALSE(LaneProduct::Plan(SpaceOf(1 << 20, 3, 3, 3), DType::kF64).has_value());  // panels of 144 MiB
  DotSpace rows_first = SpaceOf(64, 3, 3, 3);
  rows_first.roles[kRows][0].strides[kDotResult] = 1;
  rows_first.roles[kBatch][0].strides[kDotResult] = 9;
  EXPECT_FALSE(LaneProduct::Plan(rows_first, DType::kF64).has_value());
}

}  // namespace
}  // namespace tensord::cpu
