#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/kernel/kernel.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/pool_of.h"

// Products of matrices of 16-bit floats, on every instruction set that the machine has.

namespace tensord::cpu {
namespace {

// c = op(a)·op(b) for each of a batch; column-major.
struct HalfCase {
  int64_t m, n, k;
  bool transposes_a = false, transposes_b = false;
  int64_t batch = 1;
};

std::string Describe(const HalfCase& c) {
  return absl::StrCat(c.m, "x", c.k, c.transposes_a ? "T" : "", " times ", c.k, "x", c.n, c.transposes_b ? "T" : "",
                      ", ", c.batch, " of them");
}

int64_t PlaceInA(const HalfCase& c, int64_t i, int64_t q, int64_t b) {
  return (c.transposes_a ? q + i * c.k : i + q * c.m) + b * c.m * c.k;
}

int64_t PlaceInB(const HalfCase& c, int64_t q, int64_t j, int64_t b) {
  return (c.transposes_b ? j + q * c.n : q + j * c.k) + b * c.k * c.n;
}

template <typename Half, typename Result>
std::vector<Result> RunOf(const Contraction& plan, const std::vector<Half>& a, const std::vector<Half>& b,
                          int64_t results, int threads) {
  const auto aligned = [](std::vector<char>& storage) {
    return storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  };
  std::vector<char> scratch(static_cast<size_t>(plan.scratch_bytes()) + 64, '\xff');
  std::vector<char> workspace(static_cast<size_t>(plan.workspace_bytes()) + 64, '\xff');
  std::vector<Result> result(static_cast<size_t>(results));
  if (!result.empty()) std::memset(static_cast<void*>(result.data()), 0xff, result.size() * sizeof(Result));
  plan.Run(a.data(), b.data(), result.data(), aligned(scratch), aligned(workspace), PoolOf(threads));
  return result;
}

template <typename Half, typename Result>
std::vector<Result> Multiply(const HalfCase& c, const std::vector<Half>& a, const std::vector<Half>& b, int threads) {
  const Shape lhs = c.transposes_a ? Shape{c.k, c.m, c.batch} : Shape{c.m, c.k, c.batch};
  const Shape rhs = c.transposes_b ? Shape{c.n, c.k, c.batch} : Shape{c.k, c.n, c.batch};
  const absl::StatusOr<Contraction> plan = Contraction::Create(
      {kDTypeOf<Half>, lhs}, {kDTypeOf<Half>, rhs},
      {{c.transposes_a ? 0 : 1}, {c.transposes_b ? 1 : 0}, {2}, {2}, false, false, {}}, kDTypeOf<Result>);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return RunOf<Half, Result>(*plan, a, b, c.m * c.n * c.batch, threads);
}

template <typename Half, typename Result>
std::vector<Result> MultiplyOnAnyThreads(const HalfCase& c, const std::vector<Half>& a, const std::vector<Half>& b) {
  const std::vector<Result> result = Multiply<Half, Result>(c, a, b, 1);
  for (const int threads : {2, 3}) {
    const std::vector<Result> other = Multiply<Half, Result>(c, a, b, threads);
    EXPECT_TRUE(result.empty() || std::memcmp(result.data(), other.data(), result.size() * sizeof(Result)) == 0)
        << threads << " threads";
  }
  return result;
}

template <typename Half>
std::vector<Half> Normal(int64_t count, double scale, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<Half> values(static_cast<size_t>(count));
  for (Half& value : values) value = Half(static_cast<float>(normal(random)));
  return values;
}

template <typename T>
double Wide(T value) {
  return static_cast<double>(static_cast<float>(value));
}

// Half the distance between numbers of the format around `value`.
template <typename Result>
double HalfUlp(double value) {
  constexpr bool kIsF16 = std::is_same_v<Result, Float16>;
  constexpr int kBits = std::is_same_v<Result, float> ? 24 : kIsF16 ? 11 : 8;
  const int least = kIsF16 ? -14 : -126;
  return std::ldexp(0.5, std::max(value == 0 ? least : std::ilogb(value), least) + 1 - kBits);
}

// Checks the promise of numerics.md on sums, against sums in F64.
template <typename Half, typename Result>
void CheckWithinBounds(const HalfCase& c, const std::vector<Half>& a, const std::vector<Half>& b) {
  SCOPED_TRACE(Describe(c));
  const std::vector<Result> result = MultiplyOnAnyThreads<Half, Result>(c, a, b);
  int64_t wrong = 0;
  for (int64_t batch = 0; batch < c.batch; ++batch) {
    for (int64_t j = 0; j < c.n; j += 1 + c.n / 24) {
      for (int64_t i = 0; i < c.m; i += 1 + c.m / 24) {
        double sum = 0, magnitude = 0;
        for (int64_t q = 0; q < c.k; ++q) {
          const double term = Wide(a[static_cast<size_t>(PlaceInA(c, i, q, batch))]) *
                              Wide(b[static_cast<size_t>(PlaceInB(c, q, j, batch))]);
          sum += term;
          magnitude += std::abs(term);
        }
        const double got = Wide(result[static_cast<size_t>(i + j * c.m + batch * c.m * c.n)]);
        const double bound = static_cast<double>(c.k + 1) * std::ldexp(magnitude, -24) +
                             static_cast<double>(c.k) * std::ldexp(1.0, -150) + HalfUlp<Result>(sum) * 1.01;
        if (!(std::abs(got - sum) <= bound) && ++wrong < 4)
          ADD_FAILURE() << i << ", " << j << ": " << got << " for " << sum;
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

std::vector<HalfCase> HalfCases() {
  std::vector<HalfCase> cases;
  for (const bool transposes_a : {false, true}) {
    for (const bool transposes_b : {false, true}) {
      for (const int64_t k : {0, 1, 2, 5, 31, 64, 129}) {
        cases.push_back({50, 9, k, transposes_a, transposes_b});
        cases.push_back({16, 8, k, transposes_a, transposes_b, 3});
        cases.push_back({97, 33, k, transposes_a, transposes_b});
      }
      cases.push_back({300, 260, 257, transposes_a, transposes_b});
      cases.push_back({60, 40, 1600, transposes_a, transposes_b});    // sums in parts
      cases.push_back({300, 201, 1701, transposes_a, transposes_b});  // in several boxes
      cases.push_back({1, 301, 257, transposes_a, transposes_b});
      cases.push_back({301, 1, 258, transposes_a, transposes_b, 2});
      cases.push_back({2100, 1, 130, transposes_a, transposes_b});
      cases.push_back({1, 70, 9001, transposes_a, transposes_b});
      cases.push_back({1, 1, 9001, transposes_a, transposes_b});
      cases.push_back({300, 2, 513, transposes_a, transposes_b});
      cases.push_back({3, 257, 300, transposes_a, transposes_b, 2});
      cases.push_back({40, 4, 9001, transposes_a, transposes_b});
      cases.push_back({33, 33, 33, transposes_a, transposes_b, 40});  // small ones are widened as they lie
      cases.push_back({8, 8, 8, transposes_a, transposes_b, 70});
      cases.push_back({70, 150, 4200, transposes_a, transposes_b});  // sums in parts whatever rounds them
      cases.push_back({0, 5, 3, transposes_a, transposes_b});
      cases.push_back({3, 0, 70, transposes_a, transposes_b});
    }
  }
  return cases;
}

template <typename Half, typename Result>
void CheckAll() {
  for (const HalfCase& c : HalfCases()) {
    CheckWithinBounds<Half, Result>(c, Normal<Half>(c.m * c.k * c.batch, 1, 1),
                                    Normal<Half>(c.k * c.n * c.batch, 1, 2));
  }
}

TEST(HalfProductTest, IsWithinTheBoundsOfSums) {
  ForEachInstructionSet([](const char*) {
    CheckAll<BFloat16, BFloat16>();
    CheckAll<BFloat16, float>();
    CheckAll<Float16, Float16>();
    CheckAll<Float16, float>();
  });
}

// Operands that lie anyhow: apart, with odd distances, in several axes, one over the other.
DotSpace SpaceOf(const std::vector<DotAxis>& rows, const std::vector<DotAxis>& columns,
                 const std::vector<DotAxis>& summed, const std::vector<DotAxis>& batch = {}) {
  DotSpace space;
  const std::vector<DotAxis>* const roles[] = {&rows, &columns, &summed, &batch};
  for (size_t role = 0; role < kNumDotRoles; ++role) space.roles[role].assign(roles[role]->begin(), roles[role]->end());
  LayResultDensely(&space);
  return space;
}

int64_t ExtentOf(const DotSpace& space, DotSide side) {
  int64_t extent = 1;
  for (const DotAxisList& axes : space.roles) {
    for (const DotAxis& axis : axes) extent += (axis.size - 1) * axis.strides[side];
  }
  return extent;
}

template <typename Half>
void CheckStrides(const DotSpace& space) {
  const std::vector<Half> a = Normal<Half>(ExtentOf(space, kLhs), 1, 1), b = Normal<Half>(ExtentOf(space, kRhs), 1, 2);
  const absl::StatusOr<Contraction> plan =
      Contraction::Create(space, {{{kDTypeOf<Half>, false}, {kDTypeOf<Half>, false}}}, kDTypeOf<Half>);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<Half> result = RunOf<Half, Half>(*plan, a, b, ExtentOf(space, kDotResult), 2);
  const auto at = [&space](DotSide side, DotRole role, int64_t index) {
    return OffsetOf(side, space.roles[role], index);
  };
  for (int64_t batch = 0; batch < space.Size(kBatch); ++batch) {
    for (int64_t j = 0; j < space.Size(kColumns); ++j) {
      for (int64_t i = 0; i < space.Size(kRows); ++i) {
        double sum = 0, magnitude = 0;
        for (int64_t q = 0; q < space.Size(kSummed); ++q) {
          const double term =
              Wide(a[static_cast<size_t>(at(kLhs, kRows, i) + at(kLhs, kSummed, q) + at(kLhs, kBatch, batch))]) *
              Wide(b[static_cast<size_t>(at(kRhs, kColumns, j) + at(kRhs, kSummed, q) + at(kRhs, kBatch, batch))]);
          sum += term;
          magnitude += std::abs(term);
        }
        const int64_t place = at(kDotResult, kRows, i) + at(kDotResult, kColumns, j) + at(kDotResult, kBatch, batch);
        const double bound = static_cast<double>(space.Size(kSummed) + 1) * std::ldexp(magnitude, -24);
        ASSERT_NEAR(Wide(result[static_cast<size_t>(place)]), sum, bound + HalfUlp<Half>(sum) * 1.01)
            << i << ", " << j << ", " << batch;
      }
    }
  }
}

TEST(HalfProductTest, ReadsAnyStrides) {
  const DotSpace spaces[] = {
      SpaceOf({{61, {3, 0, 0}}}, {{23, {0, 5, 0}}}, {{65, {187, 121, 0}}}),
      SpaceOf({{61, {1, 0, 0}}}, {{23, {0, 71, 0}}}, {{65, {67, 1, 0}}}),
      SpaceOf({{61, {71, 0, 0}}}, {{23, {0, 1, 0}}}, {{65, {1, 29, 0}}}),
      SpaceOf({{7, {1, 0, 0}}, {9, {100, 0, 0}}}, {{5, {0, 90, 0}}, {6, {0, 451, 0}}},
              {{3, {7, 1, 0}}, {4, {25, 3, 0}}, {5, {1000, 15, 0}}}),
      SpaceOf({{7, {1, 0, 0}}, {9, {100, 0, 0}}}, {{30, {0, 90, 0}}}, {{4, {7, 1, 0}}, {17, {1000, 5, 0}}}),
      SpaceOf({{61, {1, 0, 0}}}, {{23, {0, 71, 0}}}, {{65, {67, 1, 0}}}, {{4, {4421, 0, 0}}}),
      SpaceOf({{61, {0, 0, 0}}}, {{23, {0, 1, 0}}}, {{65, {1, 23, 0}}}),
      SpaceOf({{61, {4, 0, 0}}}, {{23, {0, 260, 0}}}, {{65, {244, 4, 0}}}, {{4, {1, 1, 0}}}),
      SpaceOf({{300, {1, 0, 0}}}, {{3, {0, 2, 0}}}, {{65, {301, 7, 0}}}),
      SpaceOf({{3, {131, 0, 0}}}, {{300, {0, 67, 0}}}, {{65, {2, 1, 0}}}, {{2, {1, 30000, 0}}}),
  };
  ForEachInstructionSet([&](const char*) {
    for (const DotSpace& space : spaces) {
      SCOPED_TRACE(&space - spaces);
      CheckStrides<BFloat16>(space);
      CheckStrides<Float16>(space);
    }
  });
}

// Factors and products below the least normal number, beside ordinary ones: none is taken for zero.
TEST(HalfProductTest, KeepsSubnormalNumbers) {
  ForEachInstructionSet([](const char*) {
    for (const HalfCase& c : {HalfCase{96, 40, 33}, HalfCase{64, 64, 1700}, HalfCase{1, 300, 200}}) {
      const auto tiny = Normal<BFloat16>(c.m * c.k, 0x1p-128, 1), small = Normal<BFloat16>(c.m * c.k, 0x1p-70, 2);
      CheckWithinBounds<BFloat16, float>(c, tiny, Normal<BFloat16>(c.k * c.n, 0x1p60, 3));
      CheckWithinBounds<BFloat16, float>(c, small, Normal<BFloat16>(c.k * c.n, 0x1p-64, 4));
      CheckWithinBounds<BFloat16, BFloat16>(c, tiny, Normal<BFloat16>(c.k * c.n, 1, 5));
      auto mixed = Normal<BFloat16>(c.m * c.k, 1, 6);
      for (size_t i = 0; i < mixed.size(); i += 3) mixed[i] = tiny[i];
      std::vector<BFloat16> infinite(static_cast<size_t>(c.k * c.n), BFloat16(std::numeric_limits<float>::infinity()));
      for (BFloat16& x : mixed) x = BFloat16(std::abs(static_cast<float>(x)) + 0x1p-133F);
      for (const BFloat16 x : Multiply<BFloat16, BFloat16>(c, mixed, infinite, 2)) {
        ASSERT_EQ(static_cast<float>(x), std::numeric_limits<float>::infinity());
      }
    }
  });
}

template <typename Half>
void CheckSpecialValues(const HalfCase& c) {
  SCOPED_TRACE(Describe(c));
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<Half> a(static_cast<size_t>(c.m * c.k), Half(1.0F)), b(static_cast<size_t>(c.k * c.n), Half(-0.0F));
  // Sums of -0 are +0.
  for (const Half x : Multiply<Half, Half>(c, a, b, 2)) ASSERT_EQ(x.bits, 0);
  const auto last_row = [&c](int64_t place) { return place % c.m == c.m - 1; };
  a.back() = Half(nan);
  std::vector<Half> result = Multiply<Half, Half>(c, a, b, 2);
  for (int64_t i = 0; i < c.m * c.n; ++i) {
    ASSERT_EQ(std::isnan(static_cast<float>(result[static_cast<size_t>(i)])), last_row(i)) << i;
  }
  a.back() = Half(infinity);  // times zero
  ASSERT_TRUE(std::isnan(static_cast<float>(Multiply<Half, Half>(c, a, b, 2).back())));
  std::fill(b.begin(), b.end(), Half(-2.0F));
  result = Multiply<Half, Half>(c, a, b, 2);
  for (int64_t i = 0; i < c.m * c.n; ++i) {
    const float expected = last_row(i) ? -infinity : static_cast<float>(Half(-2.0F * static_cast<float>(c.k)));
    ASSERT_EQ(static_cast<float>(result[static_cast<size_t>(i)]), expected) << i;
  }
}

TEST(HalfProductTest, SpecialValuesGoThrough) {
  ForEachInstructionSet([](const char*) {
    for (const HalfCase& c : {HalfCase{50, 9, 33}, HalfCase{50, 9, 1701}, HalfCase{301, 1, 65}, HalfCase{1, 301, 65}}) {
      CheckSpecialValues<BFloat16>(c);
      CheckSpecialValues<Float16>(c);
    }
  });
}

}  // namespace
}  // namespace tensord::cpu
