#include "backends/cpu/elementwise/single_operand_loops.h"

#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/elementwise/elementwise.h"
#include "engine/ops/scalar/scalar_math.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"

namespace tensord::cpu {
namespace {

// Around zero, the ends of the format, every power of two and every multiple of the divisor that is near one; and
// others.
template <typename T>
std::vector<T> DividedNumbers(T divisor, std::mt19937_64* random) {
  using Bits = std::make_unsigned_t<T>;
  constexpr Bits kEnd = static_cast<Bits>(std::numeric_limits<T>::min());
  std::vector<Bits> centres = {0, kEnd};
  for (Bits power = 1; power != 0; power = static_cast<Bits>(power << 1)) {
    centres.push_back(power);
    centres.push_back(static_cast<Bits>(0 - power));
    if (divisor != 0) {
      const Bits by = static_cast<Bits>(divisor);
      centres.push_back(static_cast<Bits>(power / by * by));
      centres.push_back(static_cast<Bits>(0 - power / by * by));
    }
  }
  std::vector<T> numbers;
  for (const Bits centre : centres) {
    for (const Bits shift : {Bits(0), Bits(1), static_cast<Bits>(-1)})
      numbers.push_back(static_cast<T>(centre + shift));
  }
  for (int i = 0; i < 100; ++i) numbers.push_back(static_cast<T>((*random)() >> (*random)() % 64));
  return numbers;
}

template <typename T>
std::vector<T> Divisors(std::mt19937_64* random) {
  constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  std::vector<T> divisors = {0, 1, -1, 2, -2, 3, -3, 5, 6, 7, -7, 10, 641, -1000000007, kMin, kMin + 1, kMax, kMax - 1};
  for (size_t bit = 2; bit + 1 < 8 * sizeof(T); ++bit) {
    for (const T shift : {T(-1), T(0), T(1)}) {
      divisors.push_back(static_cast<T>((T(1) << bit) + shift));
      divisors.push_back(static_cast<T>(-(T(1) << bit) + shift));
    }
  }
  for (int i = 0; i < 100; ++i) divisors.push_back(static_cast<T>((*random)() >> (*random)() % 64));
  return divisors;
}

template <typename T, class F>
void ExpectIntegersByOne(CoreOp op, DType dtype) {
  const ElementwiseFunction function =
      GetSingleOperandLoops().single_b[static_cast<size_t>(op)][static_cast<size_t>(dtype)];
  ASSERT_NE(function, nullptr);
  std::mt19937_64 random(5);
  for (const T divisor : Divisors<T>(&random)) {
    const std::vector<T> x = DividedNumbers<T>(divisor, &random);
    std::vector<T> got(x.size());
    function(x.data(), &divisor, got.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], F()(x[i], divisor)) << x[i] << " by " << divisor;
    for (size_t n = 0; n < 20; ++n) {  // in place, and no further
      std::vector<T> some(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n) + 1);
      function(some.data(), &divisor, some.data(), static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(some[i], got[i]);
      ASSERT_EQ(some[n], x[n]);
    }
  }
}

TEST(SingleOperandLoops, IntegersAreDividedExactlyByAnyNumber) {
  ForEachInstructionSet([](const char*) {
    ExpectIntegersByOne<int32_t, scalar::Divide>(CoreOp::kDivide, DType::kI32);
    ExpectIntegersByOne<int64_t, scalar::Divide>(CoreOp::kDivide, DType::kI64);
    ExpectIntegersByOne<int32_t, scalar::Remainder>(CoreOp::kRemainder, DType::kI32);
    ExpectIntegersByOne<int64_t, scalar::Remainder>(CoreOp::kRemainder, DType::kI64);
  });
}

}  // namespace
}  // namespace tensord::cpu
