// Products in other algebras against the reference meaning of dot_general: every dtype and algebra, axes in any order,
// numbers for which the fast loops do and do not suffice; bits do not depend on threads.

#include "backends/cpu/contraction/semiring/semiring_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/kernel/kernel.h"
#include "engine/ops/contraction.h"
#include "engine/ops/semiring.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/pool_of.h"

namespace tensord::cpu {
namespace {

using Sizes = std::vector<int64_t>;

struct Product {
  Shape lhs, rhs;
  Sizes lhs_contracting, rhs_contracting, lhs_batch, rhs_batch, result_permutation;
};

// A matrix product [m,k]·[k,n].
Product Matrices(int64_t m, int64_t k, int64_t n) { return {{m, k}, {k, n}, {1}, {0}, {}, {}, {}}; }

// Returns numbers of that kind: 0 small ones, 1 some of them the zero of the algebra, 2 anything.
Literal Numbers(const ConcreteType& type, Algebra algebra, int kind, std::mt19937_64* random) {
  Literal literal = RandomLiteral(type, kind == 2 ? Values::kEdges : Values::kIntegers, random);
  VisitDType(type.dtype, [&]<typename T>(TypeTag<T>) {
    for (T& x : literal.mutable_values<T>()) {
      if constexpr (SemiringElement<T> && !std::is_same_v<T, Bool>) {
        if (kind == 1 && (*random)() % 3 == 0) x = SemiringZero<T>(algebra);
        if constexpr (IntegerElement<T>) {
          const auto below = static_cast<T>((*random)() % 8);
          if (kind == 2 && below < 2) x = static_cast<T>(std::numeric_limits<T>::max() - below);
          if (kind == 2 && below > 5) x = static_cast<T>(std::numeric_limits<T>::min() + below - 6);
        }
        if (algebra == Algebra::kMaxTimes) x = SemiringAdd(algebra, x, T());  // not below 0; NaN stays
      }
    }
  });
  return literal;
}

std::vector<char> RunOn(int threads, const SemiringProduct& product, const Literal& lhs, const Literal& rhs,
                        int64_t bytes) {
  std::vector<char> result(static_cast<size_t>(bytes), 'x');
  std::vector<char> memory(static_cast<size_t>(product.workspace_bytes()) + 64);
  void* workspace = memory.data();
  size_t room = memory.size();
  std::align(64, static_cast<size_t>(product.workspace_bytes()), workspace, room);
  product.Run(lhs.bytes().data(), rhs.bytes().data(), result.data(), workspace, PoolOf(threads));
  return result;
}

void Check(const Product& p, Algebra algebra, DType dtype, int kind, std::mt19937_64* random) {
  const Literal lhs = Numbers({dtype, p.lhs}, algebra, kind, random),
                rhs = Numbers({dtype, p.rhs}, algebra, kind, random);
  Attributes attrs(Def(CoreOp::kDotGeneral).attrs);
  attrs.Set("lhs_contracting_dimensions", p.lhs_contracting).Set("rhs_contracting_dimensions", p.rhs_contracting);
  attrs.Set("lhs_batching_dimensions", p.lhs_batch).Set("rhs_batching_dimensions", p.rhs_batch);
  attrs.Set("result_permutation", p.result_permutation).Set("algebra", static_cast<int64_t>(algebra));
  Shape natural;
  for (int64_t a : FreeAxes(static_cast<int64_t>(p.lhs.size()), p.lhs_contracting, p.lhs_batch)) {
    natural.push_back(p.lhs[static_cast<size_t>(a)]);
  }
  for (int64_t a : FreeAxes(static_cast<int64_t>(p.rhs.size()), p.rhs_contracting, p.rhs_batch)) {
    natural.push_back(p.rhs[static_cast<size_t>(a)]);
  }
  for (int64_t a : p.lhs_batch) natural.push_back(p.lhs[static_cast<size_t>(a)]);
  Shape shape = natural;
  for (size_t i = 0; i < p.result_permutation.size(); ++i) {
    shape[i] = natural[static_cast<size_t>(p.result_permutation[i])];
  }
  const std::vector<const Literal*> operands = {&lhs, &rhs};
  const absl::StatusOr<Literal> want = EvaluateNode(Def(CoreOp::kDotGeneral), attrs, operands, {dtype, shape});
  ASSERT_TRUE(want.ok()) << want.status();
  if (want->num_elements() == 0) return;

  const DotAxes axes = {p.lhs_contracting,   p.rhs_contracting, p.lhs_batch, p.rhs_batch, false, false,
                        p.result_permutation};
  const SemiringProduct product(ClassifyAxes(p.lhs, p.rhs, axes), algebra, dtype);
  ASSERT_LE(product.workspace_bytes(), kMaxWorkspaceBytes);
  const std::vector<char> one = RunOn(1, product, lhs, rhs, want->type().num_bytes());
  const Literal got = *Literal::FromBytes(want->type(), absl::string_view(one.data(), one.size()));
  ASSERT_EQ(Difference(got, *want, {}), "")
      << Name(dtype) << " " << kAlgebraNames[static_cast<size_t>(algebra)] << " kind " << kind;
  for (const int threads : {2, 4}) ASSERT_EQ(RunOn(threads, product, lhs, rhs, want->type().num_bytes()), one);
}

void CheckAll(const Product& p, std::mt19937_64* random) {
  for (const Algebra algebra : {Algebra::kMaxPlus, Algebra::kMinPlus, Algebra::kMaxTimes, Algebra::kOrAnd}) {
    for (const DType dtype : kAllDTypes) {
      if (!ElementsOf(algebra).Contains(dtype)) continue;
      for (const int kind : {0, 1, 2}) Check(p, algebra, dtype, kind, random);
    }
  }
}

TEST(SemiringProduct, MatricesOfEverySize) {
  ForEachInstructionSet([](const char*) {
    std::mt19937_64 random(1);
    for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                     {1, 9, 1},
                                                                     {3, 0, 4},
                                                                     {5, 7, 6},
                                                                     {1, 40, 70},
                                                                     {130, 20, 1},
                                                                     {67, 3, 13},
                                                                     {33, 300, 7},
                                                                     {2, 3, 0}}) {
      SCOPED_TRACE(absl::StrCat(m, "x", k, "x", n));
      CheckAll(Matrices(m, k, n), &random);
    }
  });
}

TEST(SemiringProduct, VectorsAndAFewOfThem) {
  ForEachInstructionSet([](const char*) {
    std::mt19937_64 random(4);
    const auto check = [&](const Product& p) {
      SCOPED_TRACE(absl::StrCat(p.lhs[0], "x", p.lhs[1], " times ", p.rhs[0], "x", p.rhs[1]));
      CheckAll(p, &random);
    };
    // Lanes along rows, of either operand.
    for (const int64_t columns : {1, 2, 3, 7}) {
      check(Matrices(391, 9, columns));
      check(Matrices(columns, 9, 391));
    }
    // Lanes along the sum: both operands have it first.
    for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{{1, 700, 1}, {9, 131, 1}, {3, 300, 6}}) {
      check({{k, m}, {k, n}, {0}, {0}, {}, {}, {}});
    }
    check({{1, 4000}, {4000, 1}, {1}, {0}, {}, {}, {}});
  });
}

TEST(SemiringProduct, BatchesOfSmallMatrices) {
  std::mt19937_64 random(5);
  for (const auto& [m, k, n, batch] :
       std::vector<std::array<int64_t, 4>>{{3, 4, 5, 70}, {20, 6, 9, 11}, {1, 2, 3, 300}, {64, 5, 4, 3}}) {
    SCOPED_TRACE(absl::StrCat(m, "x", k, "x", n, " times ", batch));
    CheckAll({{m, k, batch}, {k, n, batch}, {1}, {0}, {2}, {2}, {}}, &random);
    CheckAll({{k, m, batch}, {n, k, batch}, {0}, {1}, {2}, {2}, {}}, &random);
    CheckAll({{batch, m, k}, {batch, k, n}, {2}, {1}, {0}, {0}, {2, 0, 1}}, &random);
  }
}

TEST(SemiringProduct, TasksOfManyRows) {
  std::mt19937_64 random(6);
  for (const int kind : {0, 2}) {
    Check(Matrices(5000, 40, 3), Algebra::kMaxPlus, DType::kF32, kind, &random);
    Check({{300, 1500}, {300, 2}, {0}, {0}, {}, {}, {}}, Algebra::kMinPlus, DType::kI32, kind, &random);
    Check({{40, 30, 300}, {30, 20, 300}, {1}, {0}, {2}, {2}, {}}, Algebra::kMaxTimes, DType::kF64, kind, &random);
  }
}

TEST(SemiringProduct, NamesItsWay) {
  const auto way = [](const Product& p, Algebra algebra, DType dtype) {
    return SemiringProduct(
               ClassifyAxes(p.lhs, p.rhs,
                            {p.lhs_contracting, p.rhs_contracting, p.lhs_batch, p.rhs_batch, false, false, {}}),
               algebra, dtype)
        .Describe();
  };
  EXPECT_EQ(way(Matrices(512, 256, 512), Algebra::kOrAnd, DType::kBool), "or_and, 64 rows a word");
  EXPECT_THAT(way(Matrices(512, 256, 512), Algebra::kMaxPlus, DType::kF32),
              testing::StartsWith("max_plus, packed blocks of "));
  EXPECT_EQ(way(Matrices(512, 256, 1), Algebra::kMinPlus, DType::kI64), "min_plus, read as it lies, lanes along rows");
  EXPECT_EQ(way({{256, 512}, {256}, {0}, {0}, {}, {}, {}}, Algebra::kMaxTimes, DType::kF64),
            "max_times, read as it lies, lanes along the sum");
  EXPECT_EQ(way(Matrices(2, 2, 2), Algebra::kMaxPlus, DType::kF32), "max_plus, small matrices, one copied");
}

TEST(SemiringProduct, BlocksOfRowsColumnsAndTerms) {
  std::mt19937_64 random(2);
  for (const DType dtype : {DType::kF32, DType::kI64}) {
    for (const int kind : {0, 1, 2}) Check(Matrices(150, 520, 130), Algebra::kMaxPlus, dtype, kind, &random);
    // Rows stay packed from block to block.
    for (const int kind : {0, 1, 2}) Check(Matrices(90, 70, 300), Algebra::kMinPlus, dtype, kind, &random);
  }
  Check(Matrices(600, 260, 70), Algebra::kOrAnd, DType::kBool, 0, &random);
}

TEST(SemiringProduct, AxesInAnyOrder) {
  std::mt19937_64 random(3);
  CheckAll({{5, 4, 3}, {3, 6, 5}, {2}, {0}, {0}, {2}, {}}, &random);
  CheckAll({{4, 19, 3}, {3, 4, 21}, {2, 0}, {0, 1}, {}, {}, {1, 0}}, &random);
  CheckAll({{2, 3, 17}, {3, 2, 18}, {}, {}, {0, 1}, {1, 0}, {3, 1, 0, 2}}, &random);
  for (int i = 0; i < 40; ++i) {
    // Roles of axes at random: 0 lhs, 1 rhs, 2 summed, 3 batch.
    Product p;
    std::array<Sizes, 4> sizes;
    for (Sizes& of_role : sizes) {
      for (uint64_t n = random() % 3; n > 0; --n) of_role.push_back(1 + static_cast<int64_t>(random() % 6));
    }
    const auto lay = [&](size_t own, Shape* shape, Sizes* contracting, Sizes* batch) {
      struct Axis {
        size_t role, index;
      };
      std::vector<Axis> all;
      for (const size_t role : {own, size_t{2}, size_t{3}}) {
        for (size_t a = 0; a < sizes[role].size(); ++a) all.push_back({role, a});
      }
      std::shuffle(all.begin(), all.end(), random);
      contracting->resize(sizes[2].size());
      batch->resize(sizes[3].size());
      for (size_t place = 0; place < all.size(); ++place) {
        shape->push_back(sizes[all[place].role][all[place].index]);
        if (all[place].role == 2) (*contracting)[all[place].index] = static_cast<int64_t>(place);
        if (all[place].role == 3) (*batch)[all[place].index] = static_cast<int64_t>(place);
      }
    };
    lay(0, &p.lhs, &p.lhs_contracting, &p.lhs_batch);
    lay(1, &p.rhs, &p.rhs_contracting, &p.rhs_batch);
    p.result_permutation.resize(sizes[0].size() + sizes[1].size() + sizes[3].size());
    std::iota(p.result_permutation.begin(), p.result_permutation.end(), 0);
    std::shuffle(p.result_permutation.begin(), p.result_permutation.end(), random);
    SCOPED_TRACE(i);
    Check(p, static_cast<Algebra>(1 + i % 3), i % 2 == 0 ? DType::kF32 : DType::kI32, i % 3, &random);
    Check(p, Algebra::kOrAnd, DType::kBool, 0, &random);
  }
}

}  // namespace
}  // namespace tensord::cpu
