#include "engine/tensor/dim_expr.h"

#include <limits>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/random_graph.h"
#include "tests/testlib/reason_of.h"

namespace tensord {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

DimExpr Parsed(absl::string_view text) {
  absl::StatusOr<DimExpr> size = ParseDimExpr(text);
  EXPECT_TRUE(size.ok()) << text << ": " << size.status();
  return size.ok() ? *size : DimExpr(-1);
}

absl::StatusOr<int64_t> ValueFor(const DimExpr& size, int64_t n, int64_t m) {
  return size.Evaluate([n, m](const DimAtom& atom) -> absl::StatusOr<int64_t> {
    if (atom.kind == DimAtom::Kind::kOperandAxis) return atom.operand * 3 + atom.axis;
    return atom.symbol == "n" ? n : m;
  });
}

// An expression that is not normalised, with its own meaning: the oracle of the next test.
struct Raw {
  char op = 'c';  // c, n, m, or an operation
  int64_t constant = 0;
  std::vector<Raw> args;
};

Raw RandomRaw(std::mt19937_64* random, int depth) {
  const auto below = [random](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(*random); };
  constexpr absl::string_view kOps = "cnm+-*/<>";
  Raw raw{.op = kOps[static_cast<size_t>(below(depth == 0 ? 3 : 9))]};
  raw.constant = below(21) - 10;
  if (raw.op != 'c' && raw.op != 'n' && raw.op != 'm')
    raw.args = {RandomRaw(random, depth - 1), RandomRaw(random, depth - 1)};
  return raw;
}

// In 128 bits, where these small expressions do not overflow; nothing if one divides by zero.
std::optional<__int128> Meaning(const Raw& raw, int64_t n, int64_t m) {
  if (raw.op == 'c') return raw.constant;
  if (raw.op == 'n') return n;
  if (raw.op == 'm') return m;
  const std::optional<__int128> a = Meaning(raw.args[0], n, m), b = Meaning(raw.args[1], n, m);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  switch (raw.op) {
    case '+':
      return *a + *b;
    case '-':
      return *a - *b;
    case '*':
      return *a * *b;
    case '<':
      return std::min(*a, *b);
    case '>':
      return std::max(*a, *b);
    default:
      break;
  }
  if (*b == 0) return std::nullopt;
  const __int128 q = *a / *b;
  return *a % *b != 0 && (*a < 0) != (*b < 0) ? q - 1 : q;
}

absl::StatusOr<DimExpr> Build(const Raw& raw) {
  if (raw.op == 'c') return DimExpr(raw.constant);
  if (raw.op == 'n' || raw.op == 'm') return DimExpr::Symbol(absl::string_view(&raw.op, 1));
  const absl::StatusOr<DimExpr> a = Build(raw.args[0]);
  if (!a.ok()) return a;
  const absl::StatusOr<DimExpr> b = Build(raw.args[1]);
  if (!b.ok()) return b;
  switch (raw.op) {
    case '+':
      return DimExpr::Add(*a, *b);
    case '-':
      return DimExpr::Subtract(*a, *b);
    case '*':
      return DimExpr::Multiply(*a, *b);
    case '<':
      return DimExpr::Minimum(*a, *b);
    case '>':
      return DimExpr::Maximum(*a, *b);
    default:
      return DimExpr::FloorDivide(*a, *b);
  }
}

TEST(DimExprTest, NormalisingKeepsTheValue) {
  std::mt19937_64 random(1);
  int compared = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Raw raw = RandomRaw(&random, 4);
    const absl::StatusOr<DimExpr> size = Build(raw);
    if (!size.ok()) continue;  // divides by the constant 0
    for (const auto& [n, m] : {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {2, 5}, {7, 3}}) {
      const std::optional<__int128> expected = Meaning(raw, n, m);
      const absl::StatusOr<int64_t> actual = ValueFor(*size, n, m);
      // Normalising may cancel a division by zero, so only defined values are compared.
      if (!expected.has_value()) continue;
      if (actual.ok()) {
        ASSERT_EQ(*actual, static_cast<int64_t>(*expected)) << size->ToString() << " for " << n << ", " << m;
        ++compared;
      } else {
        ASSERT_EQ(ReasonOf(actual.status()), "DIM_EXPR_OVERFLOW") << size->ToString();
        ASSERT_TRUE(*expected < 0 || *expected > kMax / 1000) << size->ToString() << ": " << actual.status();
      }
    }
  }
  EXPECT_GT(compared, 20'000);
}

TEST(DimExprTest, TextComesBack) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 5'000; ++i) {
    const DimExpr size = RandomDimExpr(&random, /*operand_axes=*/true);
    EXPECT_EQ(Parsed(size.ToString()), size) << size.ToString();
  }
}

TEST(DimExprTest, EqualPolynomialsAreEqual) {
  EXPECT_EQ(Parsed("(n + 1)*(n - 1)"), Parsed("n*n - 1"));
  EXPECT_EQ(Parsed("n*m + m*n"), Parsed("2*m*n"));
  EXPECT_EQ(Parsed("n - n"), DimExpr(0));
  EXPECT_EQ(Parsed("floordiv(4*n + 6, 2)"), Parsed("2*n + 3"));
  EXPECT_EQ(Parsed("min(n, m)"), Parsed("min(m, n)"));
  EXPECT_EQ(Parsed("max(n + 1, 1 + n)"), Parsed("n + 1"));
  EXPECT_EQ(Parsed("floordiv(n, 1)"), Parsed("n"));
  EXPECT_FALSE(Parsed("floordiv(n, 2)*2") == Parsed("n"));
  EXPECT_FALSE(Parsed("n") == Parsed("m"));
  EXPECT_FALSE(Parsed("dim(0, 1)") == Parsed("dim(1, 0)"));
}

TEST(DimExprTest, DivisionRoundsDown) {
  EXPECT_EQ(Parsed("floordiv(-7, 2)"), DimExpr(-4));
  EXPECT_EQ(Parsed("floordiv(7, -2)"), DimExpr(-4));
  EXPECT_EQ(Parsed("floordiv(-8, 2)"), DimExpr(-4));
  EXPECT_EQ(*ValueFor(Parsed("10 + floordiv(n - 7, m)"), 0, 2), 6);
}

TEST(DimExprTest, OverflowIsRefused) {
  const DimExpr max(kMax), min(kMin), n = DimExpr::Symbol("n");
  EXPECT_EQ(ReasonOf(DimExpr::Add(max, DimExpr(1)).status()), "DIM_EXPR_OVERFLOW");
  EXPECT_EQ(ReasonOf(DimExpr::Subtract(min, DimExpr(1)).status()), "DIM_EXPR_OVERFLOW");
  EXPECT_EQ(ReasonOf(DimExpr::Multiply(min, DimExpr(-1)).status()), "DIM_EXPR_OVERFLOW");
  EXPECT_EQ(ReasonOf(DimExpr::FloorDivide(max, DimExpr(0)).status()), "DIM_EXPR_OVERFLOW");
  const DimExpr many = *DimExpr::Multiply(n, max);
  EXPECT_EQ(ReasonOf(DimExpr::Add(many, many).status()), "DIM_EXPR_OVERFLOW");
  EXPECT_EQ(ReasonOf(ValueFor(many, 2, 0).status()), "DIM_EXPR_OVERFLOW");
  EXPECT_EQ(ReasonOf(ValueFor(Parsed("n - 1"), 0, 0).status()), "DIM_EXPR_OVERFLOW");
  EXPECT_EQ(ReasonOf(ValueFor(Parsed("floordiv(n, m)"), 1, 0).status()), "DIM_EXPR_OVERFLOW");
  // The one quotient that does not fit, whether it is known at once or not.
  const absl::StatusOr<DimExpr> quotient = DimExpr::FloorDivide(min, DimExpr(-1));
  ASSERT_TRUE(quotient.ok());
  EXPECT_EQ(ReasonOf(ValueFor(*quotient, 0, 0).status()), "DIM_EXPR_OVERFLOW");
  EXPECT_EQ(Parsed("-9223372036854775808"), min);
}

TEST(DimExprTest, GrowthIsBounded) {
  absl::StatusOr<DimExpr> product = DimExpr(1);
  int factors = 0;
  for (; factors < 64 && product.ok(); ++factors) {
    const DimExpr factor = *DimExpr::Add(DimExpr::Symbol(absl::StrCat("a", factors)), DimExpr(1));
    product = DimExpr::Multiply(*product, factor);
  }
  EXPECT_EQ(ReasonOf(product.status()), "DIM_EXPR_INVALID");
  EXPECT_LE(factors, 10);

  absl::StatusOr<DimExpr> nested = DimExpr::Symbol("n");
  int depth = 0;
  for (; depth < 100 && nested.ok(); ++depth) nested = DimExpr::FloorDivide(*nested, DimExpr::Symbol("m"));
  EXPECT_EQ(ReasonOf(nested.status()), "DIM_EXPR_INVALID");
  EXPECT_LE(depth, DimExpr::kMaxDepth + 1);
}

TEST(DimExprTest, AsDeepAsIsAllowedReadsBack) {
  DimExpr nested = DimExpr::Symbol("n");
  for (int i = 0; i < DimExpr::kMaxDepth; ++i) {
    absl::StatusOr<DimExpr> next = DimExpr::Minimum(*DimExpr::Add(nested, DimExpr(1)), DimExpr::Symbol("m"));
    ASSERT_TRUE(next.ok()) << next.status();
    nested = *std::move(next);
  }
  EXPECT_EQ(Parsed(nested.ToString()), nested);
}

TEST(DimExprTest, SubstitutionReplacesEveryLeaf) {
  const DimExpr size = Parsed("min(dim(0, 1), n)*2 + floordiv(n, dim(1, 0))");
  const absl::StatusOr<DimExpr> replaced = size.Substitute([](const DimAtom& atom) -> absl::StatusOr<DimExpr> {
    return atom.kind == DimAtom::Kind::kSymbol ? DimExpr(6) : DimExpr(atom.operand + atom.axis + 2);
  });
  ASSERT_TRUE(replaced.ok());
  EXPECT_EQ(*replaced, DimExpr(3 * 2 + 6 / 3));
  int leaves = 0;
  size.ForEachLeaf([&leaves](const DimAtom&) { ++leaves; });
  EXPECT_EQ(leaves, 4);
}

TEST(DimExprTest, OnlyABareSymbolIsOne) {
  EXPECT_EQ(Parsed("n").as_symbol(), "n");
  for (const char* text : {"2*n", "n + 1", "n*n", "dim(0, 0)", "3", "min(n, m)"}) {
    EXPECT_FALSE(Parsed(text).as_symbol().has_value()) << text;
  }
}

TEST(DimExprTest, WrongTextIsRefused) {
  for (const char* text : {"", "+", "n +", "n n", "(n", "n)", "1n", ".n", "min", "min(n)", "min(n, m", "dim(n, 0)",
                           "dim(-1, 0)", "dim(0)", "floordiv(1 2)", "9223372036854775808", "--n", "n*", "$"}) {
    EXPECT_EQ(ReasonOf(ParseDimExpr(text).status()), "TEXT_SYNTAX") << text;
  }
}

TEST(DimExprTest, SizesPutIntoSizesStayShort) {
  // Each round nests one level more and doubles the length.
  DimExpr size = DimExpr::Symbol("n");
  absl::Status refused;
  int rounds = 0;
  for (; rounds < DimExpr::kMaxDepth && refused.ok(); ++rounds) {
    const absl::StatusOr<DimExpr> doubled =
        Parsed("min(dim(0, 0) + 1, floordiv(dim(0, 0), 3))").Substitute([&](const DimAtom&) -> absl::StatusOr<DimExpr> {
          return size;
        });
    refused = doubled.status();
    if (doubled.ok()) size = *doubled;
    EXPECT_LE(size.num_parts(), DimExpr::kMaxParts);
  }
  EXPECT_EQ(ReasonOf(refused), "DIM_EXPR_INVALID");
  EXPECT_GT(rounds, 5);
}

TEST(DimExprTest, CountsNestedParts) {
  EXPECT_EQ(DimExpr(7).num_parts(), 0);
  EXPECT_EQ(Parsed("3*n*m + n + 5").num_parts(), 3);
  EXPECT_EQ(Parsed("floordiv(n + m, 2) + n").num_parts(), 4);
}

}  // namespace
}  // namespace tensord
