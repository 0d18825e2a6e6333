// Linear algebra, compiled: compositions against the reference, sizes known and symbolic, in both memory orders; and
// runs that end at a matrix.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "engine/base/refusal.h"
#include "engine/ir/verifier.h"
#include "engine/ops/scalar/scalar_math.h"
#include "engine/reference/evaluator.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/linalg_properties.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};

// A graph of one op with all its results for outputs; `type` is that of its operands.
std::string TextOf(absl::string_view op, absl::string_view attrs, int results, const std::vector<std::string>& types) {
  std::string inputs, operands, outputs;
  for (size_t i = 0; i < types.size(); ++i) {
    absl::StrAppend(&inputs, "  %x", i, " = input : ", types[i], "\n");
    absl::StrAppend(&operands, i == 0 ? "" : ", ", "%x", i);
  }
  for (int i = 0; i < results; ++i) {
    absl::StrAppend(&outputs, "  output \"y", i, "\" = %y", results > 1 ? absl::StrCat(":", i) : "", "\n");
  }
  return absl::Substitute("graph \"g\" {\n$0  %y$1 = tensord.linalg.v1.$2($3)$4\n$5}\n", inputs,
                          results > 1 ? absl::StrCat(":", results) : "", op, operands, attrs, outputs);
}

class LinalgTest : public testing::TestWithParam<BackendUnderTest> {
 protected:
  void ExpectReference(absl::string_view text, const std::vector<Literal>& arguments, bool is_single) {
    SCOPED_TRACE(absl::StrCat(text, " of ", ToString(arguments[0].type())));
    Graph typed = ParsedGraph(text);
    const absl::StatusOr<std::vector<ShapeGuard>> guards = InferTypes(&typed);
    ASSERT_TRUE(guards.ok()) << guards.status();
    const absl::StatusOr<std::vector<Literal>> want = EvaluateReference(typed, *guards, arguments);
    ASSERT_TRUE(want.ok()) << want.status();
    for (bool row_major : {false, true}) {
      const absl::StatusOr<std::vector<Literal>> got =
          CompileAndRun(ParsedGraph(text), {.backend = backend_.get(), .row_major = row_major}, arguments);
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_EQ(got->size(), want->size());
      for (size_t i = 0; i < got->size(); ++i) {
        EXPECT_EQ(Difference((*got)[i], (*want)[i], {.norm_relative = is_single ? 1e-3 : 1e-11}), "") << "output " << i;
      }
    }
  }

  std::vector<Literal> RunText(absl::string_view text, const Literal& argument) {
    absl::StatusOr<std::vector<Literal>> results =
        CompileAndRun(ParsedGraph(text), {.backend = backend_.get()}, {argument});
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<Literal>();
  }

  const std::unique_ptr<Backend> backend_ = GetParam().make();
};

class LinalgCompositions : public LinalgTest {};
class Determinants : public LinalgTest {};
class LinalgRuns : public LinalgTest {};

TEST_P(LinalgCompositions, OfSquareMatrices) {
  std::mt19937 random(3);
  for (DType dtype : kDTypes) {
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{4, 4, 3}, Shape{9, 9, 2}, Shape{0, 0, 2}, Shape{3, 3, 0}}) {
      const Literal a = RandomMatrices(dtype, shape, &random);
      for (const std::string& type : {absl::StrCat(Name(dtype), "[n,n,b]"), ToString(a.type())}) {
        ExpectReference(TextOf("Inverse", "", 1, {type}), {a}, SizeOf(RealPartOf(dtype)) == 4);
        ExpectReference(TextOf("Determinant", "", 1, {type}), {a}, SizeOf(RealPartOf(dtype)) == 4);
        ExpectReference(TextOf("SignLogDeterminant", "", 2, {type}), {a}, SizeOf(RealPartOf(dtype)) == 4);
      }
    }
    const std::string type = absl::StrCat(Name(dtype), "[3,3]");
    const Literal singular = Filled(dtype, {3, 3}, 1);
    ExpectReference(TextOf("Determinant", "", 1, {type}), {singular}, true);
    ExpectReference(TextOf("SignLogDeterminant", "", 2, {type}), {singular}, true);
    const Literal nan = Filled(dtype, {3, 3}, std::numeric_limits<double>::quiet_NaN());
    for (absl::string_view op : {"Inverse", "Determinant"}) ExpectReference(TextOf(op, "", 1, {type}), {nan}, true);
  }
}

// Copies of a matrix, one after the other.
Literal Repeated(const Literal& matrix, int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) absl::StrAppend(&bytes, matrix.bytes());
  const Shape& shape = matrix.shape();
  return *Literal::FromBytes({matrix.dtype(), {shape[0], shape[1], count}}, bytes);
}

// A permutation of even parity times a diagonal matrix, of which one half is `large` and the other one its inverse; the
// partial products of their pivots overflow, or underflow, whichever come first.
Literal BalancedMatrix(DType dtype, int64_t n, bool begins_large) {
  Literal literal = *Literal::Create({dtype, {n, n}});
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    if constexpr (RealElement<T> || ComplexElement<T>) {
      const double large = SizeOf(RealPartOf(dtype)) == 4 ? 0x1p80 : 0x1p700;
      for (int64_t j = 0; j < n; ++j) {
        const bool is_large = (j < n / 2) == begins_large;
        const int64_t row = n >= 3 ? (j < 3 ? (j + 1) % 3 : j) : j;  // three rows change places
        literal.mutable_values<T>()[static_cast<size_t>(row + j * n)] =
            static_cast<T>(scalar::ConvertElement<T>(is_large ? large : 1 / large));
      }
    }
  });
  return literal;
}

TEST_P(Determinants, AreFiniteWhereTheyCanBeWritten) {
  for (DType dtype : kDTypes) {
    for (const int64_t n : {2, 4, 16, 18, 40, 300}) {  // small matrices, LAPACK's panels, blocks
      for (bool begins_large : {false, true}) {
        const Literal a = BalancedMatrix(dtype, n, begins_large);
        SCOPED_TRACE(ToString(a.type()));
        const auto run = [&](absl::string_view op, int results, const Literal& argument) {
          return RunText(TextOf(op, "", results, {ToString(argument.type())}), argument);
        };
        const Literal one = VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
          if constexpr (RealElement<T> || ComplexElement<T>) return Literal::Scalar<T>(scalar::ConvertElement<T>(1.0));
          return Literal();
        });
        EXPECT_EQ(Difference(run("Determinant", 1, a)[0], one, {}), "");
        const std::vector<Literal> sign_log = run("SignLogDeterminant", 2, a);
        EXPECT_EQ(Difference(sign_log[0], one, {}), "");
        EXPECT_EQ(scalar::ConvertElement<double>(RealPartOf(dtype) == DType::kF32 ? sign_log[1].values<float>()[0]
                                                                                  : sign_log[1].values<double>()[0]),
                  0);
      }
    }
  }
}

// A matrix and the same with rows and columns multiplied by powers of two whose product is 1, far beyond what products
// of two of its entries can be; some rows and columns are huge and others tiny.
std::pair<Literal, Literal> UnevenMatrices(DType dtype, int64_t n, std::mt19937* random) {
  const Literal even = RandomMatrices(dtype, {n, n}, random);
  Literal uneven = even;
  const int most = SizeOf(RealPartOf(dtype)) == 4 ? 54 : 450;
  const auto power = [&](int64_t i) { return n < 2 || (n % 2 == 1 && i == n - 1) ? 0 : i % 2 == 0 ? most : -most; };
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    if constexpr (RealElement<T> || ComplexElement<T>) {
      absl::Span<T> values = uneven.mutable_values<T>();
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < n; ++i) {
          const double factor = std::ldexp(1.0, power(i) + power(n - 1 - j));
          values[static_cast<size_t>(i + j * n)] =
              scalar::Multiply{}(values[static_cast<size_t>(i + j * n)], scalar::ConvertElement<T>(factor));
        }
      }
    }
  });
  return {even, uneven};
}

TEST_P(Determinants, OfUnevenRowsAndColumnsLoseNothing) {
  std::mt19937 random(11);
  for (DType dtype : kDTypes) {
    for (const int64_t n : {2, 3, 4, 16, 18, 40, 130}) {
      const auto [even, uneven] = UnevenMatrices(dtype, n, &random);
      const std::string type = ToString(even.type());
      SCOPED_TRACE(type);
      for (const auto& [op, results] : {std::pair{"Determinant", 1}, std::pair{"SignLogDeterminant", 2}}) {
        const std::vector<Literal> want = RunText(TextOf(op, "", results, {type}), even);
        const std::vector<Literal> got = RunText(TextOf(op, "", results, {type}), uneven);
        const double limit = (SizeOf(RealPartOf(dtype)) == 4 ? 1e-4 : 1e-12) * static_cast<double>(n);
        for (size_t i = 0; i < want.size(); ++i) {
          EXPECT_EQ(Difference(got[i], want[i], {.norm_relative = limit, .least_norm = i == 0 ? 0.0 : 1.0}), "")
              << op << " " << i;
        }
        const Literal matrices = Repeated(uneven, 70);
        const std::vector<Literal> together = RunText(TextOf(op, "", results, {ToString(matrices.type())}), matrices);
        EXPECT_EQ(together[0].bytes().substr(0, got[0].bytes().size()), got[0].bytes());
      }
    }
  }
}

TEST_P(Determinants, AreFiniteWhereEliminationWouldOverflow) {
  // det [[m, m, 0], [-m, m, 0], [0, 0, t]] = 2 m^2 t; the second pivot is 2 m.
  const auto matrix = [](double m, double t) { return std::vector<double>{m, -m, 0, m, m, 0, 0, 0, t}; };
  const auto run = [this](const std::vector<double>& values, DType dtype) {
    Literal a = *Literal::Create({dtype, {3, 3}});
    VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
      if constexpr (RealElement<T> || ComplexElement<T>) {
        for (size_t i = 0; i < values.size(); ++i) a.mutable_values<T>()[i] = scalar::ConvertElement<T>(values[i]);
      }
    });
    return RunText(TextOf("Determinant", "", 1, {ToString(a.type())}), a)[0];
  };
  EXPECT_EQ(run(matrix(0x1p1023, 0x1p-1060), DType::kF64).values<double>()[0], 0x1p987);
  EXPECT_EQ(run(matrix(0x1p1023, 0x1p-1060), DType::kC128).values<Complex128>()[0], Complex128(0x1p987));
  EXPECT_EQ(run(matrix(0x1p127, 0x1p-140), DType::kF32).values<float>()[0], 0x1p115f);
  EXPECT_EQ(run(matrix(0x1p127, 0x1p-140), DType::kC64).values<Complex64>()[0], Complex64(0x1p115f));
}

TEST_P(Determinants, KeepBothPartsOfComplexNumbersHoweverFarApart) {
  const auto run = [this](std::vector<Complex128> diagonal) {
    const int64_t n = static_cast<int64_t>(diagonal.size());
    Literal a = *Literal::Create({DType::kC128, {n, n}});
    for (size_t i = 0; i < diagonal.size(); ++i) {
      a.mutable_values<Complex128>()[i * (diagonal.size() + 1)] = diagonal[i];
    }
    return RunText(TextOf("Determinant", "", 1, {ToString(a.type())}), a)[0].values<Complex128>()[0];
  };
  EXPECT_EQ(run({{1e300, 1e-300}}), Complex128(1e300, 1e-300));
  EXPECT_EQ(run({{1e-300, -1e300}}), Complex128(1e-300, -1e300));
  EXPECT_EQ(run({{0x1p1000, 0x1p-1000}, {0x1p-1000, 0}, {0x1p900, 0}}), Complex128(0x1p900, 0));
  EXPECT_EQ(run({{0x1p600, 0x1p-600}, {0x1p600, 0}, {0x1p-300, 0}}), Complex128(0x1p900, 0x1p-300));
}

class LinalgBatches : public LinalgTest {
 protected:
  // A matrix has the same bits alone and in a batch, where it may lie at any multiple of its element's size.
  void ExpectSameBitsInABatch(absl::string_view op, int results, const Literal& a) {
    const std::vector<Literal> alone = RunText(TextOf(op, "", results, {ToString(a.type())}), a);
    for (const int64_t batch : {1, 3, 70}) {
      if (GetParam().compiles && batch == 70) continue;
      const Literal matrices = Repeated(a, batch);
      SCOPED_TRACE(absl::StrCat(op, " of ", ToString(matrices.type())));
      const std::vector<Literal> together = RunText(TextOf(op, "", results, {ToString(matrices.type())}), matrices);
      for (size_t i = 0; i < alone.size(); ++i) {
        std::string repeated;
        for (int64_t b = 0; b < batch; ++b) absl::StrAppend(&repeated, alone[i].bytes());
        EXPECT_TRUE(together[i].bytes() == repeated) << "result " << i;
      }
    }
  }
};

TEST_P(LinalgBatches, HaveTheBitsOfDeterminantsAlone) {
  std::mt19937 random(8);
  for (DType dtype : kDTypes) {
    for (const int64_t n : {1, 3, 7, 16, 17, 40, 130}) {
      const Literal a = RandomMatrices(dtype, {n, n}, &random);
      ExpectSameBitsInABatch("Determinant", 1, a);
      ExpectSameBitsInABatch("SignLogDeterminant", 2, a);
    }
  }
}

TEST_P(LinalgBatches, HaveTheBitsOfDecompositionsAlone) {
  std::mt19937 random(9);
  for (DType dtype : kDTypes) {
    for (const int64_t n : {3, 17, 35, 67}) {
      if (GetParam().compiles && n > 32) continue;  // cuSOLVER's, which is LAPACK where the host plays the device
      Literal a = RandomMatrices(dtype, {n, n}, &random);
      for (const auto& [op, results] :
           {std::pair{"Lu", 4}, std::pair{"Qr", 2}, std::pair{"HouseholderQr", 2}, std::pair{"Eigh", 2},
            std::pair{"Eig", 2}, std::pair{"Svd", 3}, std::pair{"Inverse", 1}, std::pair{"PseudoInverse", 1}}) {
        if (GetParam().compiles && op == std::string("Eig")) continue;  // likewise, whatever its size
        ExpectSameBitsInABatch(op, results, a);
      }
      // Its lower part is that of a positive definite matrix.
      VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
        if constexpr (RealElement<T> || ComplexElement<T>) {
          for (int64_t i = 0; i < n; ++i) {
            a.mutable_values<T>()[static_cast<size_t>(i + i * n)] =
                static_cast<T>(scalar::ConvertElement<T>(10.0 * static_cast<double>(n)));
          }
        }
      });
      ExpectSameBitsInABatch("Cholesky", 1, a);
    }
  }
}

TEST_P(LinalgCompositions, OfSingularValues) {
  std::mt19937 random(4);
  for (DType dtype : kDTypes) {
    const bool is_single = SizeOf(RealPartOf(dtype)) == 4;
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{4, 4, 3}, Shape{7, 3, 2}, Shape{3, 7, 2}, Shape{0, 3, 2},
                               Shape{3, 0, 2}, Shape{5, 2, 0}}) {
      std::vector<Literal> matrices = {RandomMatrices(dtype, shape, &random)};
      if (shape[0] * shape[1] > 0) matrices.push_back(RandomOfRank(dtype, shape, 1, &random));
      const Literal b = RandomMatrices(dtype, {shape[0], 2, shape[2]}, &random);
      for (const Literal& a : matrices) {
        for (const std::string& type : {absl::StrCat(Name(dtype), "[m,n,b]"), ToString(a.type())}) {
          const std::string sides =
              absl::StrCat(Name(dtype), "[", type.find('m') == type.npos ? absl::StrCat(shape[0]) : "m", ",2,",
                           type.find('m') == type.npos ? absl::StrCat(shape[2]) : "b", "]");
          for (absl::string_view attrs : {"", " {relative_cutoff = 0.05}"}) {
            ExpectReference(TextOf("MatrixRank", attrs, 1, {type}), {a}, is_single);
            ExpectReference(TextOf("PseudoInverse", attrs, 1, {type}), {a}, is_single);
            ExpectReference(TextOf("LeastSquares", attrs, 1, {type, sides}), {a, b}, is_single);
          }
        }
      }
    }
  }
}

// Sizes that the run decides go through as any other.
TEST_P(LinalgCompositions, OfSizesThatTheRunDecides) {
  const std::string text =
      "graph \"g\" {\n  %a = input : f64[4,4,5]\n  %n = input : i64[]\n"
      "  %t = dynamic_truncate(%a, %n) {dimension = 2}\n  %i = tensord.linalg.v1.Inverse(%t)\n"
      "  %u = dynamic_truncate(%a, %n) {dimension = 0}\n  %p = tensord.linalg.v1.PseudoInverse(%u)\n"
      "  output \"i\" = %i\n  output \"p\" = %p\n}\n";
  std::mt19937 random(5);
  const Literal a = RandomMatrices(DType::kF64, {4, 4, 5}, &random);
  for (int64_t n : {0, 1, 3}) ExpectReference(text, {a, Literal::Scalar<int64_t>(n)}, false);
}

TEST_P(LinalgRuns, EndAtTheMatrixThatFails) {
  std::mt19937 random(6);
  const Literal ones = Filled(DType::kF64, {3, 3, 2}, 1);
  struct Failing {
    std::string text;
    absl::string_view reason;
  };
  for (const Failing& c : {Failing{TextOf("Inverse", "", 1, {"f64[n,n,b]"}), "MATRIX_SINGULAR"},
                           Failing{TextOf("Cholesky", "", 1, {"f64[n,n,b]"}), "MATRIX_NOT_POSITIVE_DEFINITE"}}) {
    const absl::Status status = CompileAndRun(ParsedGraph(c.text), {.backend = backend_.get()}, {ones}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    const RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{});
    EXPECT_EQ(detail.reason, c.reason);
    EXPECT_EQ(detail.node, "y");
    EXPECT_TRUE(absl::StrContains(status.message(), "batch index [0]")) << status;
  }
  // The same program serves the next run.
  const Literal identity = RandomPositiveDefinite(DType::kF64, {3, 3, 2}, &random);
  EXPECT_TRUE(
      CompileAndRun(ParsedGraph(TextOf("Cholesky", "", 1, {"f64[n,n,b]"})), {.backend = backend_.get()}, {identity})
          .ok());
}

INSTANTIATE_TEST_SUITE_P(Backends, LinalgCompositions, testing::ValuesIn(kCpuAndCuda), NameOfBackend());
INSTANTIATE_TEST_SUITE_P(Backends, Determinants, testing::ValuesIn(kCpuAndCuda), NameOfBackend());
INSTANTIATE_TEST_SUITE_P(Backends, LinalgBatches, testing::ValuesIn(kCpuAndCuda), NameOfBackend());
INSTANTIATE_TEST_SUITE_P(Backends, LinalgRuns, testing::ValuesIn(kCpuAndCuda), NameOfBackend());

}  // namespace
}  // namespace tensord
