#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/matmul/tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/pool_of.h"

namespace tensord::cpu {
namespace {

using Sizes = std::vector<int64_t>;

struct DotCase {
  Sizes lhs, rhs;
  Sizes lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
  bool conjugates_lhs = false, conjugates_rhs = false;
  Sizes result_permutation = {};
};

std::string Describe(const DotCase& c) {
  return absl::StrCat("[", absl::StrJoin(c.lhs, ","), "].[", absl::StrJoin(c.rhs, ","), "] contracting {",
                      absl::StrJoin(c.lhs_contracting, ","), "}{", absl::StrJoin(c.rhs_contracting, ","), "} batch {",
                      absl::StrJoin(c.lhs_batch, ","), "}{", absl::StrJoin(c.rhs_batch, ","), "}",
                      c.conjugates_lhs ? " conj lhs" : "", c.conjugates_rhs ? " conj rhs" : "",
                      c.result_permutation.empty() ? "" : " permuted {", absl::StrJoin(c.result_permutation, ","),
                      c.result_permutation.empty() ? "" : "}");
}

int64_t Product(const Sizes& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

// Offsets of all indices over some axes of a dense tensor, the first axis fastest.
Sizes Offsets(const Sizes& shape, const Sizes& axes) {
  Sizes offsets = {0};
  for (int64_t axis : axes) {
    int64_t stride = 1;
    for (int64_t k = 0; k < axis; ++k) stride *= shape[static_cast<size_t>(k)];
    Sizes next;
    for (int64_t i = 0; i < shape[static_cast<size_t>(axis)]; ++i) {
      for (int64_t offset : offsets) next.push_back(offset + i * stride);
    }
    offsets = next;
  }
  return offsets;
}

Sizes FreeAxesOf(const Sizes& shape, const Sizes& contracting, const Sizes& batch) {
  Sizes free;
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
    if (std::count(contracting.begin(), contracting.end(), axis) + std::count(batch.begin(), batch.end(), axis) == 0) {
      free.push_back(axis);
    }
  }
  return free;
}

int64_t NumResults(const DotCase& c) {
  int64_t n = 1;
  for (int64_t axis : FreeAxesOf(c.lhs, c.lhs_contracting, {})) n *= c.lhs[static_cast<size_t>(axis)];
  for (int64_t axis : FreeAxesOf(c.rhs, c.rhs_contracting, c.rhs_batch)) n *= c.rhs[static_cast<size_t>(axis)];
  return n;
}

// The axes of the product before they are permuted.
Sizes ProductShape(const DotCase& c) {
  Sizes shape;
  for (int64_t axis : FreeAxesOf(c.lhs, c.lhs_contracting, c.lhs_batch))
    shape.push_back(c.lhs[static_cast<size_t>(axis)]);
  for (int64_t axis : FreeAxesOf(c.rhs, c.rhs_contracting, c.rhs_batch))
    shape.push_back(c.rhs[static_cast<size_t>(axis)]);
  for (int64_t axis : c.lhs_batch) shape.push_back(c.lhs[static_cast<size_t>(axis)]);
  return shape;
}

// result[i] = fold over the contracted axes with add(sum, x, y), from `zero`.
template <typename R, typename T, typename Add>
std::vector<R> Naive(const DotCase& c, const std::vector<T>& lhs, const std::vector<T>& rhs, R zero, Add add) {
  std::vector<R> result;
  const Sizes lk = Offsets(c.lhs, c.lhs_contracting), rk = Offsets(c.rhs, c.rhs_contracting);
  const Sizes lb = Offsets(c.lhs, c.lhs_batch), rb = Offsets(c.rhs, c.rhs_batch);
  const Sizes lf = Offsets(c.lhs, FreeAxesOf(c.lhs, c.lhs_contracting, c.lhs_batch));
  const Sizes rf = Offsets(c.rhs, FreeAxesOf(c.rhs, c.rhs_contracting, c.rhs_batch));
  for (size_t b = 0; b < lb.size(); ++b) {
    for (int64_t r : rf) {
      for (int64_t l : lf) {
        R sum = zero;
        for (size_t k = 0; k < lk.size(); ++k) {
          sum = add(sum, lhs[static_cast<size_t>(l + lk[k] + lb[b])], rhs[static_cast<size_t>(r + rk[k] + rb[b])]);
        }
        result.push_back(sum);
      }
    }
  }
  if (c.result_permutation.empty()) return result;
  std::vector<R> permuted;
  for (int64_t from : Offsets(ProductShape(c), c.result_permutation))
    permuted.push_back(result[static_cast<size_t>(from)]);
  return permuted;
}

absl::StatusOr<Contraction> Plan(const DotCase& c, DType operands, DType result) {
  return Contraction::Create({operands, Shape(c.lhs.begin(), c.lhs.end())},
                             {operands, Shape(c.rhs.begin(), c.rhs.end())},
                             {c.lhs_contracting, c.rhs_contracting, c.lhs_batch, c.rhs_batch, c.conjugates_lhs,
                              c.conjugates_rhs, c.result_permutation},
                             result);
}

// The result starts as bytes of ones (NaN, as a float), which must not be read.
template <typename R, typename T>
std::vector<R> Dot(const DotCase& c, const std::vector<T>& lhs, const std::vector<T>& rhs, int threads) {
  absl::StatusOr<Contraction> plan = Plan(c, kDTypeOf<T>, kDTypeOf<R>);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const auto aligned = [](std::vector<char>& storage) {
    return storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  };
  std::vector<char> scratch(static_cast<size_t>(plan->scratch_bytes()) + 64, '\xff');
  std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()) + 64, '\xff');
  std::vector<R> result(static_cast<size_t>(NumResults(c)));
  if (!result.empty()) std::memset(static_cast<void*>(result.data()), 0xff, result.size() * sizeof(R));
  plan->Run(lhs.data(), rhs.data(), result.data(), aligned(scratch), aligned(workspace), PoolOf(threads));
  return result;
}

template <typename R, typename T>
std::vector<R> DotAnyThreads(const DotCase& c, const std::vector<T>& lhs, const std::vector<T>& rhs) {
  const std::vector<R> result = Dot<R>(c, lhs, rhs, 1);
  for (int threads : {2, 4}) {
    const std::vector<R> other = Dot<R>(c, lhs, rhs, threads);
    EXPECT_TRUE(result.empty() || std::memcmp(result.data(), other.data(), result.size() * sizeof(R)) == 0)
        << threads << " threads";
  }
  return result;
}

// Any assignment of axes to roles, in any order.
DotCase AnyCase(std::mt19937& random, int64_t largest) {
  DotCase c;
  enum Role { kFree, kContracted, kBatch };
  struct Axis {
    Role role;
    size_t pair;
    int64_t size;
  };
  std::vector<Axis> lhs, rhs;
  const auto size = [&] { return 1 + static_cast<int64_t>(random() % static_cast<unsigned>(largest)); };
  const size_t contracted = random() % 3, batch = random() % 3;
  for (size_t i = 0; i < contracted + batch; ++i) {
    const Axis axis = {i < contracted ? kContracted : kBatch, i, random() % 30 == 0 ? 0 : size()};
    lhs.push_back(axis);
    rhs.push_back(axis);
  }
  for (auto* side : {&lhs, &rhs}) {
    const size_t free = random() % 3;
    for (size_t i = 0; i < free; ++i) side->push_back({kFree, 0, random() % 40 == 0 ? 0 : size()});
    std::shuffle(side->begin(), side->end(), random);
  }
  for (const Axis& axis : lhs) c.lhs.push_back(axis.size);
  for (const Axis& axis : rhs) c.rhs.push_back(axis.size);
  std::vector<size_t> pairs(contracted + batch);
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = i;
  std::shuffle(pairs.begin(), pairs.end(), random);
  for (size_t pair : pairs) {
    const auto place = [pair](const std::vector<Axis>& side) {
      const auto found =
          std::find_if(side.begin(), side.end(), [pair](const Axis& a) { return a.role != kFree && a.pair == pair; });
      return static_cast<int64_t>(found - side.begin());
    };
    (pair < contracted ? c.lhs_contracting : c.lhs_batch).push_back(place(lhs));
    (pair < contracted ? c.rhs_contracting : c.rhs_batch).push_back(place(rhs));
  }
  return c;
}

int64_t NumProducts(const DotCase& c) {
  int64_t n = NumResults(c);
  for (int64_t axis : c.lhs_contracting) n *= c.lhs[static_cast<size_t>(axis)];
  return n;
}

// A case that a naive loop ends within a second under any sanitizer.
DotCase RandomCase(std::mt19937& random, int64_t largest) {
  constexpr int64_t kMostProducts = int64_t{1} << 20;
  DotCase c = AnyCase(random, largest);
  while (NumProducts(c) > kMostProducts) c = AnyCase(random, largest);
  return c;
}

DotCase Matrices(int64_t m, int64_t k, int64_t n) { return {{m, k}, {k, n}, {1}, {0}, {}, {}}; }

std::vector<DotCase> Cases() {
  std::vector<DotCase> cases;
  for (int64_t m : {1, 2, 3, 4, 7, 8, 9, 33, 70}) {
    for (int64_t n : {1, 4, 5, 8, 9, 40}) {
      for (int64_t k : {0, 1, 2, 4, 16, 17, 50}) {
        cases.push_back(Matrices(m, k, n));
        cases.push_back({{k, m}, {n, k}, {0}, {1}, {}, {}});
      }
    }
  }
  cases.push_back({{3, 5, 7}, {3, 7, 2}, {2}, {1}, {0}, {0}});      // batch first: has to be packed
  cases.push_back({{5, 7, 30}, {7, 2, 30}, {1}, {0}, {2}, {2}});    // batch last
  cases.push_back({{4, 6, 5}, {6, 3}, {1}, {0}, {}, {}});           // contracted in the middle
  cases.push_back({{4, 6, 5}, {5, 6, 3}, {1, 2}, {1, 0}, {}, {}});  // the sides have the sums in another order
  cases.push_back({{}, {}, {}, {}, {}, {}});
  std::mt19937 random(17);
  for (int round = 0; round < 250; ++round) cases.push_back(RandomCase(random, 7));
  for (int round = 0; round < 40; ++round) cases.push_back(RandomCase(random, 20));
  return cases;
}

// Small integers: exact in every dtype that the sums below are computed in.
template <typename T>
std::vector<T> SmallIntegers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t re = static_cast<int32_t>(random() % 7) - 3, im = static_cast<int32_t>(random() % 7) - 3;
    if constexpr (ComplexElement<T>) {
      values.emplace_back(static_cast<typename T::value_type>(re), static_cast<typename T::value_type>(im));
    } else if constexpr (HalfElement<T>) {
      values.push_back(T(static_cast<float>(re)));
    } else {
      values.push_back(static_cast<T>(re));
    }
  }
  return values;
}

template <typename R, typename T>
void CheckExact(const DotCase& c) {
  SCOPED_TRACE(Describe(c));
  const auto lhs = SmallIntegers<T>(Product(c.lhs), 1);
  const auto rhs = SmallIntegers<T>(Product(c.rhs), 2);
  const auto result = DotAnyThreads<R>(c, lhs, rhs);
  if constexpr (ComplexElement<T>) {
    EXPECT_EQ(result, Naive(c, lhs, rhs, R(0), [&c](R sum, T x, T y) {
                return sum + (c.conjugates_lhs ? std::conj(R(x)) : R(x)) * (c.conjugates_rhs ? std::conj(R(y)) : R(y));
              }));
  } else if constexpr (HalfElement<T>) {
    const auto expected = Naive(c, lhs, rhs, 0.0, [](double sum, T x, T y) {
      return sum + static_cast<double>(static_cast<float>(x)) * static_cast<double>(static_cast<float>(y));
    });
    ASSERT_EQ(result.size(), expected.size());
    for (size_t i = 0; i < result.size(); ++i) {
      EXPECT_EQ(static_cast<float>(result[i]), static_cast<float>(R(static_cast<float>(expected[i]))));
    }
  } else {
    EXPECT_EQ(result, Naive(c, lhs, rhs, R(0), [](R sum, T x, T y) { return sum + R(x) * R(y); }));
  }
}

TEST(DotTest, EqualsNaiveLoop) {
  for (const DotCase& c : Cases()) {
    CheckExact<float, float>(c);
    CheckExact<double, double>(c);
    CheckExact<Complex64, Complex64>(c);
    CheckExact<Complex128, Complex128>(c);
    CheckExact<int32_t, int32_t>(c);
    CheckExact<int64_t, int64_t>(c);
    CheckExact<Float16, Float16>(c);
    CheckExact<BFloat16, BFloat16>(c);
  }
}

// Every way in which a result may be written: by the products themselves, with the sides exchanged, and copied.
TEST(DotTest, WritesResultsInAnyOrder) {
  std::vector<DotCase> cases;
  std::mt19937 random(29);
  for (int round = 0; round < 100; ++round) cases.push_back(RandomCase(random, 7));
  for (int round = 0; round < 25; ++round) cases.push_back(RandomCase(random, 20));
  cases.push_back({{24, 5, 48, 3}, {16, 7, 5}, {1}, {2}, {}, {}});
  cases.push_back({{5, 48, 2, 24}, {9, 5, 8, 16}, {0}, {1}, {}, {}});
  cases.push_back({{11, 2, 48, 96}, {16, 24, 11}, {0}, {2}, {}, {}});
  for (DotCase& c : cases) {
    c.result_permutation.resize(ProductShape(c).size());
    std::iota(c.result_permutation.begin(), c.result_permutation.end(), 0);
    for (int order = 0; order < 2; ++order) {
      std::shuffle(c.result_permutation.begin(), c.result_permutation.end(), random);
      c.conjugates_lhs = random() % 4 == 0;
      c.conjugates_rhs = random() % 4 == 0;
      CheckExact<float, float>(c);
      CheckExact<double, double>(c);
      CheckExact<Complex64, Complex64>(c);
      CheckExact<Complex128, Complex128>(c);
      CheckExact<int32_t, int32_t>(c);
      CheckExact<BFloat16, BFloat16>(c);
      CheckExact<double, float>(c);
    }
  }
}

// The result begins with an axis that lies far apart in the operand, which has another innermost: tiles write it as it
// is to be, though they read an element of a line each.
TEST(DotTest, TransposesWhileItMultiplies) {
  for (int64_t outer : {8, 13, 24, 48}) {
    for (int64_t inner : {8, 11, 24}) {
      for (int64_t columns : {5, 24}) {
        DotCase left = {{inner, 16, 3, outer, 2}, {columns, 16}, {1}, {1}, {}, {}};
        left.result_permutation = {2, 1, 4, 3, 0};
        DotCase right = {{columns, 16}, {inner, 16, 3, outer, 2}, {1}, {1}, {}, {}};
        right.result_permutation = {3, 2, 0, 4, 1};
        for (const DotCase& c : {left, right}) {
          CheckExact<float, float>(c);
          CheckExact<double, double>(c);
          CheckExact<Complex128, Complex128>(c);
          CheckExact<BFloat16, BFloat16>(c);
        }
        if (GetGemmTiles(DType::kF64).rows == 0 || outer % GetGemmTiles(DType::kF64).rows != 0 || columns < 8) continue;
        for (const DotCase& c : {left, right}) EXPECT_EQ(Plan(c, DType::kF64, DType::kF64)->scratch_bytes(), 0);
      }
    }
  }
}

// A small matrix along any axes of a tensor, whichever side it is, with the new axes in the place of the old ones.
TEST(DotTest, AppliesSmallMatricesInPlaceOfAxes) {
  std::mt19937 random(31);
  for (int64_t below : {1, 2, 3, 4, 5, 8, 13, 16, 40, 257, 5000}) {
    for (int64_t rows : {1, 2, 3, 4, 5, 9, 16}) {
      const int64_t terms = std::vector<int64_t>{2, 4, 16}[random() % 3];
      const int64_t above = 1 + 3000 / (below * terms);
      DotCase left = {{rows, terms}, {below, terms, above}, {1}, {1}, {}, {}};
      left.result_permutation = {1, 0, 2};
      DotCase right = {{below, terms, above}, {terms, rows}, {1}, {0}, {}, {}};
      right.result_permutation = {0, 2, 1};
      // Two axes, apart from each other, the new ones likewise.
      DotCase two = {{below, 2, 3, terms, above}, {rows, 2, terms, 2}, {1, 3}, {1, 2}, {}, {}};
      two.result_permutation = {0, 3, 1, 4, 2};
      for (DotCase c : {left, right, two}) {
        c.conjugates_lhs = random() % 2 == 0;
        c.conjugates_rhs = random() % 2 == 0;
        CheckExact<float, float>(c);
        CheckExact<double, double>(c);
        CheckExact<Complex64, Complex64>(c);
        CheckExact<Complex128, Complex128>(c);
        CheckExact<int64_t, int64_t>(c);
      }
    }
  }
}

TEST(DotTest, ConjugatesEitherSide) {
  std::vector<DotCase> cases = Cases();
  cases.push_back(Matrices(150, 90, 130));
  cases.push_back({{90, 150}, {130, 90}, {0}, {1}, {}, {}});
  cases.push_back(Matrices(1, 40000, 1));
  cases.push_back(Matrices(3000, 400, 1));
  cases.push_back(Matrices(1, 400, 3000));
  cases.push_back(Matrices(20, 9000, 20));
  for (DotCase& c : cases) {
    for (const auto& [lhs, rhs] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
      c.conjugates_lhs = lhs;
      c.conjugates_rhs = rhs;
      CheckExact<Complex64, Complex64>(c);
      CheckExact<Complex128, Complex128>(c);
      CheckExact<Complex128, Complex64>(c);
    }
  }
}

// The flags mean nothing for real numbers.
TEST(DotTest, RealNumbersAreTheirOwnConjugates) {
  DotCase c = Matrices(9, 20, 5);
  c.conjugates_lhs = c.conjugates_rhs = true;
  CheckExact<float, float>(c);
  CheckExact<int32_t, int32_t>(c);
}

TEST(DotTest, WiderResultsAreComputedWide) {
  std::mt19937 random(23);
  for (int round = 0; round < 60; ++round) {
    const DotCase c = RandomCase(random, 9);
    CheckExact<float, Float16>(c);
    CheckExact<double, Float16>(c);
    CheckExact<float, BFloat16>(c);
    CheckExact<double, BFloat16>(c);
    CheckExact<double, float>(c);
    CheckExact<Complex128, Complex64>(c);
    CheckExact<int64_t, int32_t>(c);
  }
  const std::vector<int32_t> big = {INT32_MAX, INT32_MAX};
  EXPECT_EQ(Dot<int64_t>(Matrices(1, 2, 1), big, big, 1)[0], 2 * int64_t{INT32_MAX} * INT32_MAX);
  const std::vector<float> third = {1.0f / 3};
  EXPECT_EQ(Dot<double>(Matrices(1, 1, 1), third, third, 1)[0], double{1.0f / 3} * double{1.0f / 3});
}

TEST(DotTest, BoolIsOrOfAnds) {
  for (const DotCase& c : Cases()) {
    SCOPED_TRACE(Describe(c));
    std::mt19937 random(4);
    const auto draw = [&random](int64_t count) {
      std::vector<Bool> values(static_cast<size_t>(count));
      for (Bool& v : values) v = Bool(random() % 5 == 0);
      return values;
    };
    const auto lhs = draw(Product(c.lhs)), rhs = draw(Product(c.rhs));
    EXPECT_EQ(DotAnyThreads<Bool>(c, lhs, rhs), Naive(c, lhs, rhs, Bool(false), [](Bool sum, Bool x, Bool y) {
                return Bool(sum.value || (x.value && y.value));
              }));
  }
}

TEST(DotTest, IntegersWrap) {
  for (int64_t m : {3, 70}) {
    const DotCase c = Matrices(m, 20, 9);
    std::mt19937_64 random(8);
    std::vector<int64_t> lhs(static_cast<size_t>(m * 20)), rhs(20 * 9);
    for (auto* side : {&lhs, &rhs}) {
      for (int64_t& v : *side) v = static_cast<int64_t>(random());
    }
    EXPECT_EQ(
        DotAnyThreads<int64_t>(c, lhs, rhs), Naive(c, lhs, rhs, int64_t{0}, [](int64_t sum, int64_t x, int64_t y) {
          return static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
        }));
  }
}

// Shapes that are cut: along the rows, the columns, k, and the batch.
TEST(DotTest, LargeProductsAreCutAlikeForAnyThreads) {
  const DotCase cases[] = {Matrices(300, 200, 400),
                           Matrices(129, 190, 150),
                           Matrices(3000, 4, 7),
                           Matrices(3000, 8, 2),
                           Matrices(40, 20000, 30),
                           Matrices(1, 400000, 1),
                           Matrices(3000, 400, 1),
                           Matrices(1, 400, 3000),
                           Matrices(20, 50000, 1),
                           Matrices(1, 50000, 20),
                           Matrices(700, 1, 900),
                           {{400, 3000}, {400}, {0}, {0}, {}, {}},
                           {{50000, 20}, {50000}, {0}, {0}, {}, {}},
                           {{64, 64, 40}, {64, 64, 40}, {1}, {0}, {2}, {2}},
                           {{40, 64, 64}, {40, 64, 64}, {2}, {1}, {0}, {0}},
                           {{200, 150, 3}, {150, 170, 3}, {1}, {0}, {2}, {2}}};
  // Some have loops of ours, the others BLAS.
  ForEachInstructionSet([&cases](const char*) {
    for (const DotCase& c : cases) {
      SCOPED_TRACE(Describe(c));
      std::mt19937 random(9);
      std::uniform_real_distribution<float> distribution(-1, 1);
      std::vector<float> lhs(static_cast<size_t>(Product(c.lhs))), rhs(static_cast<size_t>(Product(c.rhs)));
      for (auto* side : {&lhs, &rhs}) {
        for (float& v : *side) v = distribution(random);
      }
      const auto result = DotAnyThreads<float>(c, lhs, rhs);
      const auto expected = Naive(c, lhs, rhs, 0.0, [](double sum, float x, float y) {
        return sum + static_cast<double>(x) * static_cast<double>(y);
      });
      const auto magnitude = Naive(c, lhs, rhs, 0.0, [](double sum, float x, float y) {
        return sum + std::abs(static_cast<double>(x) * static_cast<double>(y));
      });
      ASSERT_EQ(result.size(), expected.size());
      for (size_t i = 0; i < result.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-6 * magnitude[i]) << i;
    }
  });
}

TEST(DotTest, LargeIntegerProductsAreExact) {
  CheckExact<int32_t, int32_t>(Matrices(150, 90, 130));
  CheckExact<int64_t, int64_t>({{90, 150}, {90, 130}, {0}, {0}, {}, {}});
  CheckExact<Complex128, Complex128>(Matrices(150, 90, 130));
  CheckExact<double, double>(Matrices(40, 10000, 30));
  CheckExact<Complex64, Complex64>(Matrices(2, 200000, 1));
}

TEST(DotTest, NanAndInfinityGoThrough) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (int64_t m : {1, 2, 40, 2000}) {
    for (int64_t n : {1, 3, 40}) {
      for (int64_t k : {1, 5, 40}) {
        std::vector<float> lhs(static_cast<size_t>(m * k), 1), rhs(static_cast<size_t>(k * n), 0);
        lhs.back() = nan;  // times 0 in every column
        auto result = Dot<float>(Matrices(m, k, n), lhs, rhs, 1);
        for (int64_t i = 0; i < m * n; ++i) {
          EXPECT_EQ(std::isnan(result[static_cast<size_t>(i)]), i % m == m - 1) << m << " " << n << " " << k;
        }
        lhs.back() = infinity;
        result = Dot<float>(Matrices(m, k, n), lhs, rhs, 1);
        EXPECT_TRUE(std::isnan(result.back()));
      }
    }
  }
}

// Operands of a few hundred KiB whose axes are in any order, so that panels are cut along one role or several.
std::vector<DotCase> PanelCases() {
  std::vector<DotCase> cases = {
      {{24, 20, 25, 12}, {20, 31, 12}, {1, 3}, {0, 2}, {}, {}},      // rows and sums interleave on the left
      {{11, 20, 2, 12}, {20, 24, 12, 25}, {1, 3}, {0, 2}, {}, {}},   // columns and sums on the right
      {{16, 18, 16, 15}, {15, 17, 18, 14}, {1, 3}, {2, 0}, {}, {}},  // both sides
      {{8, 90, 20, 30}, {30, 90, 8, 2}, {1, 3}, {1, 0}, {0}, {2}},   // a batch that lies innermost
      {{3, 40000, 2}, {2, 40000}, {1}, {1}, {}, {}},                 // small results of long sums
      {{70, 30, 70}, {70, 30, 70}, {0, 1, 2}, {2, 1, 0}, {}, {}},    // one number
      {{4, 3, 2, 3, 4, 2, 3, 2, 3, 5}, {3, 2, 5, 3, 3, 2}, {9, 1, 7, 3, 5}, {2, 3, 5, 0, 1}, {}, {}},
      {{1, 150, 1, 130, 3}, {3, 1, 130}, {3, 4}, {2, 0}, {}, {}},  // axes of one element
      {{0, 200, 30}, {30, 200, 4}, {1, 2}, {1, 0}, {}, {}},        // an empty result
      {{20, 30, 2, 0}, {2, 30, 0, 3}, {2, 3}, {0, 2}, {}, {}},     // sums over nothing
      {{200, 3, 0}, {2, 3, 0, 300}, {1}, {1}, {2}, {2}},           // an empty batch
  };
  for (int64_t more : {-1, 0, 1}) {
    cases.push_back({{64 + more, 64, 16}, {8, 64 + more}, {0}, {1}, {}, {}});
    cases.push_back({{4, 4}, {2, 4, 8192 + more}, {1}, {1}, {}, {}});
    cases.push_back({{2, 256 + more, 128}, {256 + more, 3, 2}, {0, 1}, {2, 0}, {}, {}});
  }
  return cases;
}

TEST(DotTest, PanelsAreCutAndJoined) {
  for (DotCase& c : PanelCases()) {
    c.conjugates_lhs = c.conjugates_rhs = false;
    CheckExact<float, float>(c);
    CheckExact<double, double>(c);
    CheckExact<int32_t, int32_t>(c);
    CheckExact<int64_t, int32_t>(c);
    CheckExact<Float16, Float16>(c);
    CheckExact<BFloat16, BFloat16>(c);
    CheckExact<double, Float16>(c);
    CheckExact<Complex64, Complex64>(c);
    c.conjugates_lhs = true;
    CheckExact<Complex128, Complex128>(c);
    CheckExact<Complex128, Complex64>(c);
    c.conjugates_rhs = true;
    CheckExact<Complex64, Complex64>(c);
  }
}

TEST(DotTest, HalfProductsAreConvertedByPanels) {
  for (const DotCase& c :
       {Matrices(700, 300, 20), Matrices(20, 300, 700), Matrices(1, 300, 900), Matrices(301, 900, 1)}) {
    CheckExact<Float16, Float16>(c);
    CheckExact<float, BFloat16>(c);
  }
}

// Products beside a small matrix have loops of their own, whose vectors differ.
TEST(DotTest, SmallMatricesOnEveryInstructionSet) {
  ForEachInstructionSet([](const char*) {
    for (int64_t size = 1; size <= 8; ++size) {
      for (int64_t terms : {2, 5, 8, 16}) {
        std::vector<DotCase> cases = {Matrices(size, terms, 41),
                                      {{terms, size}, {37, terms}, {0}, {1}, {}, {}},
                                      {{size, terms, 9}, {terms, 3, 9}, {1}, {0}, {2}, {2}},  // copies
                                      {{size, 3, terms, 2}, {2, terms, 7}, {2, 3}, {1, 0}, {}, {}},
                                      {{size, terms}, {3, terms, 9}, {1}, {1}, {}, {}}};  // columns of two axes
        if (terms <= 8) cases.push_back(Matrices(1037, terms, size));
        for (const DotCase& c : cases) {
          CheckExact<float, float>(c);
          CheckExact<double, double>(c);
          CheckExact<Complex64, Complex64>(c);
          CheckExact<Complex128, Complex128>(c);
          CheckExact<int32_t, int32_t>(c);
        }
      }
    }
  });
}

// Scratch for packing and converting stays small beside the tensors, or below a MiB or so.
TEST(DotTest, ScratchIsSmallBesideTheTensors) {
  const DotCase cases[] = {{{48, 32, 32, 32}, {48, 32, 32, 32}, {1, 3}, {3, 1}, {}, {}},
                           {{120, 100, 120}, {120, 100, 100}, {1, 2}, {2, 0}, {}, {}},
                           {{100, 120, 100}, {120, 100, 100}, {0, 2}, {1, 2}, {}, {}},
                           {{512, 64, 64}, {512, 64, 64}, {1}, {2}, {0}, {0}},
                           {{2, 2, 1 << 19}, {1 << 19, 2, 2}, {0, 2}, {2, 0}, {}, {}},
                           Matrices(2000, 2000, 2000),
                           Matrices(1, 2000000, 1),
                           Matrices(2000, 2000, 1)};
  for (const DotCase& c : cases) {
    SCOPED_TRACE(Describe(c));
    for (const auto& [operands, result] : {std::pair(DType::kF64, DType::kF64), std::pair(DType::kF16, DType::kF16),
                                           std::pair(DType::kC64, DType::kC128), std::pair(DType::kI32, DType::kI64)}) {
      const absl::StatusOr<Contraction> plan = Plan(c, operands, result);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const int64_t tensors = (Product(c.lhs) + Product(c.rhs)) * SizeOf(operands) + NumResults(c) * SizeOf(result);
      EXPECT_LE(plan->workspace_bytes(), kMaxWorkspaceBytes);
      EXPECT_LE(plan->scratch_bytes(), std::max<int64_t>(int64_t{300} << 10, tensors / 8)) << Name(operands);
    }
  }
}

TEST(DotTest, SizesBeyondBlasAreRefused) {
  const int64_t huge = int64_t{1} << 33;
  EXPECT_EQ(Plan({{2, huge}, {huge, 2}, {1}, {0}, {}, {}}, DType::kF32, DType::kF32).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(Plan({{huge}, {2}, {}, {}, {}, {}}, DType::kF32, DType::kF32).ok());
}

}  // namespace
}  // namespace tensord::cpu
