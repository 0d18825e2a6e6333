// A value is the same whether the compiler knows what it is made of, or the run alone does: sizes, constants, and nodes
// that nobody needs.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/ops/scalar/scalar_math.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/property/connected_case.h"
#include "tests/testlib/reason_of.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

class EarlyAndLate : public testing::Test {
 protected:
  absl::StatusOr<std::vector<Literal>> TryRun(const std::string& text, const std::vector<Literal>& arguments) {
    return CompileAndRun(ParsedGraph(text), {.backend = backend_.get()}, arguments);
  }
  Literal Run(const std::string& text, const std::vector<Literal>& arguments) {
    auto results = TryRun(text, arguments);
    EXPECT_TRUE(results.ok()) << results.status() << "\n" << text;
    return results.ok() ? (*results)[0] : Literal();
  }

  const std::unique_ptr<Backend> backend_ = MakeCpuBackend({.threads = 2});
};

Literal Repeated(DType dtype, Shape shape, double value) {
  Literal literal = Literal::Create({dtype, std::move(shape)}).value();
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    for (T& x : literal.mutable_values<T>()) x = scalar::ConvertElement<T>(value);
  });
  return literal;
}

// Zeros that are negative, in either part.
int64_t NegativeZeros(const Literal& literal) {
  int64_t count = 0;
  VisitDType(literal.dtype(), [&]<typename T>(TypeTag<T>) {
    for (const T& x : literal.values<T>()) {
      const auto z = scalar::ConvertElement<Complex128>(x);
      count += (z.real() == 0 && std::signbit(z.real())) + (z.imag() == 0 && std::signbit(z.imag()));
    }
  });
  return count;
}

// 0 * -1 is -0, and the sum of it, which begins with 0, is 0.
TEST_F(EarlyAndLate, ProductsOfOneTermAreSums) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kC64, DType::kC128}) {
    for (const int64_t m : {1, 2, 9, 40, 300}) {
      for (const int64_t n : {1, 2, 9, 40, 300}) {
        const auto product = [&](const std::string& left, const std::string& right) {
          return Run(absl::Substitute(R"(graph "g" {
  %x = input : $0[$1]
  %y = input : $0[$2]
  %z = dot_general(%x, %y) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
  output "z" = %z
}
)",
                                      Name(dtype), left, right),
                     {Repeated(dtype, {m, 1}, 0), Repeated(dtype, {1, n}, -1)});
        };
        EXPECT_EQ(NegativeZeros(product("m,k", "k,n")), 0) << Name(dtype) << " " << m << " " << n;
        EXPECT_EQ(NegativeZeros(product(absl::StrCat(m, ",1"), absl::StrCat("1,", n))), 0) << Name(dtype);
      }
    }
  }
}

// A kernel that maps before and after it reduces an axis of one element does nothing but map.
TEST_F(EarlyAndLate, FusedReductionsOfOneElementBeginWithTheirIdentity) {
  const auto reduced = [&](const std::string& kind, const std::string& shape, const Literal& x) {
    return Run(absl::Substitute(R"(graph "g" {
  %x = input : $0[$1]
  %a = negate(%x)
  %y = reduce(%a) {kind = $2, dimensions = [0]}
  %z = negate(%y)
  %w = negate(%z)
  output "w" = %w
}
)",
                                Name(x.dtype()), shape, kind),
               {x});
  };
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kC64, DType::kC128}) {
    for (const int64_t m : {1, 2, 40}) {
      const Literal zeros = Repeated(dtype, {1, m}, 0);
      EXPECT_EQ(NegativeZeros(reduced("sum", absl::StrCat("1,", m), zeros)), 0) << Name(dtype) << " " << m;
      EXPECT_EQ(NegativeZeros(reduced("sum", "n,m", zeros)), 0) << Name(dtype) << " " << m;
    }
  }
  Literal infinite = Repeated(DType::kC64, {1, 2}, 0);
  infinite.mutable_values<Complex64>()[0] = Complex64(1, std::numeric_limits<float>::infinity());
  const Literal early = reduced("product", "1,2", infinite), late = reduced("product", "n,m", infinite);
  EXPECT_TRUE(std::isnan(early.values<Complex64>()[0].real()));
  EXPECT_TRUE(std::isnan(late.values<Complex64>()[0].real()));
  EXPECT_EQ(NegativeZeros(early), NegativeZeros(late));
}

// Also where nothing but the run knows the exponent.
TEST_F(EarlyAndLate, FirstAndSecondPowersAreExact) {
  std::mt19937_64 random(11);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Literal x = RandomLiteral({dtype, {2000}}, Values::kEdges, &random);
    for (const double exponent : {1.0, 2.0}) {
      const auto power = [&](const std::string& more, const std::string& y, const std::vector<Literal>& arguments) {
        return Run(absl::Substitute(R"(graph "g" {
  %x = input : $0[2000]
  %y = $1
$2  output "z" = %z
}
)",
                                    Name(dtype), y, more),
                   arguments);
      };
      const std::string by_run = absl::StrCat("input : ", Name(dtype), "[2000]");
      const Literal late = power("  %z = pow(%x, %y)\n", by_run, {x, Repeated(dtype, {2000}, exponent)});
      const Literal early =
          power("  %b = broadcast_in_dim(%y) {shape = [2000], broadcast_dimensions = []}\n  %z = pow(%x, %b)\n",
                absl::StrCat("constant() {value = ", Name(dtype), "[] [", exponent, "]}"), {x});
      const Literal written =
          power(exponent == 1 ? "  %w = negate(%x)\n  %z = negate(%w)\n" : "  %z = multiply(%x, %x)\n", by_run, {x, x});
      VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
        for (size_t i = 0; i < 2000; ++i) {
          const auto of = [i](const Literal& literal) {
            return scalar::ConvertElement<double>(literal.values<T>()[i]);
          };
          if (std::isnan(of(x))) continue;
          EXPECT_EQ(of(late), of(written)) << Name(dtype) << " " << of(x) << " to the " << exponent;
          EXPECT_EQ(of(early), of(written)) << Name(dtype) << " " << of(x) << " to the " << exponent;
        }
      });
    }
  }
}

template <typename T>
void ExpectBothNan(const Literal& literal, const std::string& what) {
  for (const T& z : literal.values<T>()) {
    EXPECT_TRUE(std::isnan(z.real()) && std::isnan(z.imag())) << what << ": " << z.real() << ", " << z.imag();
  }
}

// If each of two numbers has one part NaN, the winner would depend on the order in which they come.
TEST_F(EarlyAndLate, ExtremesOfComplexNumbersWithANanAreNanInBothParts) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t size : {int64_t{1}, int64_t{2}, int64_t{64}, int64_t{5000}}) {
    Literal x = Repeated(DType::kC64, {size}, 1);
    x.mutable_values<Complex64>()[0] = Complex64(5, nan);
    if (size > 40) x.mutable_values<Complex64>()[40] = Complex64(nan, 9);
    for (const std::string kind : {"max", "min"}) {
      const std::string reduce = "  %m = reduce(%x) {kind = " + kind + ", dimensions = [0]}\n  output \"m\" = %m\n}\n";
      for (const std::string& given : {absl::StrCat(size), std::string("n")}) {
        const Literal got = Run("graph \"g\" {\n  %x = input : c64[" + given + "]\n" + reduce, {x});
        ExpectBothNan<Complex64>(got, kind + " of " + given);
      }
      const Graph graph = ParsedGraph("graph \"g\" {\n  %x = input : c64[n]\n" + reduce);
      const auto constant = CompileAndRun(property::ConstantOf(graph, {x}), {.backend = backend_.get()}, {});
      ASSERT_TRUE(constant.ok()) << constant.status();
      ExpectBothNan<Complex64>((*constant)[0], kind + " of a constant");
    }
  }
  const Literal a = Repeated(DType::kC64, {3}, 1);
  Literal b = a;
  for (Complex64& z : b.mutable_values<Complex64>()) z = Complex64(5, nan);
  for (const std::string op : {"maximum", "minimum"}) {
    const std::string inputs = "graph \"g\" {\n  %a = input : c64[3]\n  %b = input : c64[3]\n";
    ExpectBothNan<Complex64>(Run(inputs + "  %m = " + op + "(%a, %b)\n  output \"m\" = %m\n}\n", {a, b}), op);
    ExpectBothNan<Complex64>(Run(inputs + "  %m = " + op + "(%b, %a)\n  output \"m\" = %m\n}\n", {a, b}), op);
    ExpectBothNan<Complex64>(Run(inputs + "  %m = " + op + "(%b, %b)\n  output \"m\" = %m\n}\n", {a, b}), op);
  }
}

// A size that cannot be is refused, whether a result needs the node or not.
TEST_F(EarlyAndLate, NodesThatNobodyNeedsHaveSizesToo) {
  const auto reason = [&](const std::string& size, const std::string& wanted) {
    return ReasonOf(TryRun(absl::Substitute(R"(graph "g" {
  %x = input : f32[$2]
  %dead = iota() {type = f32[$0], dimension = 0}
  %y = negate(%x)
  output "y" = %$1
}
)",
                                            size, wanted, size == "-3" ? "2" : "n"),
                           {Repeated(DType::kF32, {2}, 1)})
                        .status());
  };
  EXPECT_EQ(reason("-3", "y"), "SHAPE_OVERFLOW");
  for (const std::string wanted : {"y", "dead"}) {
    EXPECT_EQ(reason("n - 2", wanted), "");
    EXPECT_EQ(reason("n - 3", wanted), "DIM_EXPR_OVERFLOW");
    EXPECT_EQ(reason("floordiv(8, n - 2)", wanted), "DIM_EXPR_OVERFLOW");
  }
}

}  // namespace
}  // namespace tensord
