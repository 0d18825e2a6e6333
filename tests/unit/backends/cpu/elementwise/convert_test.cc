#include "backends/cpu/elementwise/convert.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ops/scalar/scalar_math.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/sample_values.h"

namespace tensord::cpu {
namespace {

template <typename From, typename To>
void CheckPair() {
  const ConvertFunction convert = FindConvert(kDTypeOf<From>, kDTypeOf<To>);
  ASSERT_NE(convert, nullptr);
  const std::string pair = absl::StrCat(Name(kDTypeOf<From>), " to ", Name(kDTypeOf<To>));
  for (int64_t n : {0, 1, 9, 65, 1300}) {
    const std::vector<From> x = SampleValues<From>(n, 11);
    // Operand and result each one element off their alignment to a vector.
    std::vector<From> from(static_cast<size_t>(n) + 1);
    std::copy(x.begin(), x.end(), from.begin() + 1);
    std::vector<To> to(static_cast<size_t>(n) + 3);
    const To guard = SampleValues<To>(1, 2)[0];
    to[static_cast<size_t>(n) + 1] = guard;
    convert(from.data() + 1, to.data() + 1, n);
    for (size_t i = 0; i < x.size(); ++i) {
      const To want = scalar::ConvertElement<To>(x[i]);
      ASSERT_TRUE(Agree(to[i + 1], want, 0)) << pair << ": " << Show(x[i]) << " became " << Show(to[i + 1]) << ", not "
                                             << Show(want) << " (n = " << n << ")";
    }
    ASSERT_EQ(std::memcmp(&to[static_cast<size_t>(n) + 1], &guard, sizeof(To)), 0) << pair;
    if constexpr (sizeof(From) == sizeof(To)) {
      convert(from.data() + 1, from.data() + 1, n);
      ASSERT_EQ(n == 0 ? 0 : std::memcmp(from.data() + 1, to.data() + 1, x.size() * sizeof(To)), 0)
          << pair << " in place";
    }
  }
}

TEST(ConvertTest, EveryPairMeansWhatTheScalarConversionMeans) {
  ForEachInstructionSet([](const char*) {
    for (DType from : kAllDTypes) {
      for (DType to : kAllDTypes) {
        VisitDType(from, [to]<typename From>(TypeTag<From>) {
          VisitDType(to, []<typename To>(TypeTag<To>) { CheckPair<From, To>(); });
        });
      }
    }
  });
}

template <typename To, typename From>
To Convert(From x) {
  To y;
  FindConvert(kDTypeOf<From>, kDTypeOf<To>)(&x, &y, 1);
  return y;
}

TEST(ConvertTest, FloatsTruncateAndSaturate) {
  EXPECT_EQ((Convert<int32_t>(-1.9f)), -1);
  EXPECT_EQ((Convert<int32_t>(3e9f)), std::numeric_limits<int32_t>::max());
  EXPECT_EQ((Convert<int32_t>(-3e9f)), std::numeric_limits<int32_t>::min());
  EXPECT_EQ((Convert<int32_t>(-2147483648.0f)), std::numeric_limits<int32_t>::min());
  EXPECT_EQ((Convert<int32_t>(2147483647.0)), std::numeric_limits<int32_t>::max());
  EXPECT_EQ((Convert<int64_t>(std::numeric_limits<double>::infinity())), std::numeric_limits<int64_t>::max());
  EXPECT_EQ((Convert<int64_t>(-0x1p63)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ((Convert<int64_t>(std::numeric_limits<float>::quiet_NaN())), 0);
}

TEST(ConvertTest, DoublesAreRoundedOnceToSixteenBits) {
  // Just above halfway between two bfloat16 numbers: rounding to float first would land on the tie and go down.
  const double above_half = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ((Convert<BFloat16>(above_half)).bits, 0x3f81);
  EXPECT_EQ((Convert<BFloat16>(1 + 0x1p-8)).bits, 0x3f80);
  EXPECT_EQ((Convert<Float16>(1 + 0x1p-11 + 0x1p-45)).bits, 0x3c01);
  EXPECT_EQ((Convert<Float16>(1 + 0x1p-11)).bits, 0x3c00);
  EXPECT_EQ((Convert<Float16>(65519.999999)).bits, 0x7bff);
  EXPECT_EQ((Convert<Float16>(65520.0)).bits, 0x7c00);
  EXPECT_EQ((Convert<Float16>(1e300)).bits, 0x7c00);
  EXPECT_EQ((Convert<Float16>(-0x1p-25)).bits, 0x8000);
  EXPECT_EQ((Convert<Float16>(0x1.000001p-25)).bits, 0x0001);
  EXPECT_EQ((Convert<BFloat16>(int32_t{0x01010001})).bits, 0x4b81);  // 2^24 + 2^16 + 1 lies above the tie
}

TEST(ConvertTest, IntegersWrapAndComplexTakesTheRealPart) {
  EXPECT_EQ((Convert<int32_t>(int64_t{0x100000005})), 5);
  EXPECT_EQ((Convert<int32_t>(std::numeric_limits<int64_t>::min())), 0);
  EXPECT_EQ((Convert<float>(Complex128(2.5, 7))), 2.5f);
  EXPECT_EQ((Convert<Bool>(Complex64(0, 7))).value, 0);
  EXPECT_EQ((Convert<Bool>(std::numeric_limits<float>::quiet_NaN())).value, 1);
  EXPECT_EQ((Convert<Bool>(-0.0)).value, 0);
  EXPECT_EQ((Convert<Complex64>(Bool(true))), Complex64(1, 0));
}

}  // namespace
}  // namespace tensord::cpu
