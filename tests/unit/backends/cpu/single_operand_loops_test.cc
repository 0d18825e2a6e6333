#include "backends/cpu/single_operand_loops.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/elementwise.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"

namespace tensord::cpu {
namespace {

template <typename T>
void ExpectExpOfDifference(DType dtype) {
  const ElementwiseFunction both = GetSingleOperandLoops().exp_of_difference[static_cast<size_t>(dtype)];
  ASSERT_NE(both, nullptr);
  const T specials[] = {T(INFINITY), T(-INFINITY), T(NAN), T(-0.0), T(100), T(-1000)};
  for (const T one : {T(0), T(-0.0), T(1.25), T(INFINITY), T(NAN)}) {
    for (size_t n = 0; n <= 70; ++n) {
      std::vector<T> x(n), ones(n, one), expected(n), got(n + 1, T(7));
      for (size_t i = 0; i < n; ++i) x[i] = i % 9 == 8 ? specials[i / 9 % 6] : T(0.37) * static_cast<T>(i) - T(11);
      const int64_t count = static_cast<int64_t>(n);
      FindElementwise(CoreOp::kSubtract, dtype)(x.data(), ones.data(), expected.data(), count);
      FindElementwise(CoreOp::kExp, dtype)(expected.data(), nullptr, expected.data(), count);
      both(x.data(), &one, got.data(), count);
      EXPECT_EQ(got[n], T(7));
      for (size_t i = 0; i < n; ++i) {
        if (std::isnan(expected[i])) {
          EXPECT_TRUE(std::isnan(got[i]));
        } else {
          EXPECT_EQ(std::memcmp(&got[i], &expected[i], sizeof(T)), 0) << i << " of " << n << " less " << one;
        }
      }
    }
  }
}

TEST(SingleOperandLoops, ExpOfADifferenceHasTheBitsOfBothSteps) {
  ForEachInstructionSet([](const char*) {
    ExpectExpOfDifference<float>(DType::kF32);
    ExpectExpOfDifference<double>(DType::kF64);
  });
}

}  // namespace
}  // namespace tensord::cpu
