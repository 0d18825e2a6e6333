#include <complex>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/reference/evaluator.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/autodiff/rule_case.h"

namespace tensord {
namespace {

// A regular matrix of %x, far from others with equal eigenvalues, in a batch of two.
constexpr absl::string_view kMatrices = R"(
  %d = constant() {value = f64[3] [4, 7, 11]} %dt = convert(%d) {dtype = DTYPE}
  %e = embed_diag(%dt) {axis_a = 0, axis_b = 1}
  %b = broadcast_in_dim(%e) {shape = [3, 3, 2], broadcast_dimensions = [0, 1]}
  %a = add(%x, %b)
)";

RuleCase MatrixCase(absl::string_view name, absl::string_view nodes, absl::string_view dtype,
                    absl::string_view inputs = "") {
  return {std::string(name), absl::StrCat("%x = input : T[3,3,2] ", inputs),
          absl::StrReplaceAll(absl::StrCat(kMatrices, nodes), {{"DTYPE", dtype}})};
}

TEST(DerivativeRules, AreThoseOfLinearAlgebra) {
  const std::string linalg = "tensord.linalg.v1.";
  for (const char* dtype : {"f64", "c128"}) {
    for (const char* op : {"Cholesky", "Inverse", "Determinant", "EighValues"}) {
      ExpectRightRule(MatrixCase(op, absl::StrCat("%y = ", linalg, op, "(%a)"), dtype), dtype);
    }
    ExpectRightRule(MatrixCase("Solve", absl::StrCat("%y = ", linalg, "Solve(%a, %r)"), dtype, "%r = input : T[3,2,2]"),
                    dtype);
    for (const char* result : {"", ":1"}) {
      ExpectRightRule(
          MatrixCase("SignLogDeterminant",
                     absl::StrCat("%s:2 = ", linalg, "SignLogDeterminant(%a) %y = negate(%s", result, ")"), dtype),
          dtype);
    }
    // Projectors: vectors have no phase of their own.
    ExpectRightRule(MatrixCase("Eigh", absl::StrCat("%s:2 = ", linalg, R"(Eigh(%a)
                      %v = slice(%s:1) {start_indices = [0, 0, 0], limit_indices = [3, 1, 2]} %c = conj(%v)
                      %y = dot_general(%v, %c) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
                        lhs_batching_dimensions = [2], rhs_batching_dimensions = [2]})"),
                               dtype),
                    dtype);
    for (const char* transpose : {"no_transpose", "transpose", "adjoint"}) {
      for (const char* flags : {"left_side = true, lower = true", "lower = true, unit_diagonal = true",
                                "left_side = true, unit_diagonal = true", "lower = false"}) {
        const bool left = std::string(flags).find("left") != std::string::npos;
        ExpectRightRule(MatrixCase(absl::StrCat(transpose, flags),
                                   absl::StrCat("%y = ", linalg, "TriangularSolve(%a, %r) {", flags,
                                                ", transpose_a = ", transpose, "}"),
                                   dtype, left ? "%r = input : T[3,2,2]" : "%r = input : T[2,3,2]"),
                        dtype);
      }
    }
  }
}

// Sizes that are split into blocks, evenly, unevenly and down to a single row. Second derivatives differentiate both
// walks over the blocks.
TEST(DerivativeRules, OfCholeskyGoByBlocks) {
  const auto of_size = [](int64_t n, absl::string_view batch, absl::string_view dtype) {
    return RuleCase{absl::StrCat("Cholesky of ", n, " rows"), absl::StrCat("%x = input : T[", n, ",", n, batch, "]"),
                    absl::StrReplaceAll(R"(
      %c = constant() {value = f64[] [100]} %d = convert(%c) {dtype = DTYPE}
      %v = broadcast_in_dim(%d) {shape = [SIZE], broadcast_dimensions = []}
      %e = embed_diag(%v) {axis_a = 0, axis_b = 1}
      %b = broadcast_in_dim(%e) {shape = [SIZE, SIZE BATCH], broadcast_dimensions = [0, 1]}
      %a = add(%x, %b) %y = tensord.linalg.v1.Cholesky(%a))",
                                        {{"SIZE", absl::StrCat(n)}, {"BATCH", batch}, {"DTYPE", dtype}})};
  };
  ExpectRightRule(of_size(65, ",2", "f64"), "f64");
  ExpectRightRule(of_size(65, "", "c128"), "c128");
  ExpectRightRule(of_size(128, "", "f64"), "f64");
  ExpectRightRule(of_size(194, "", "f64"), "f64");
  ExpectRightRule(of_size(65, ",0", "f64"), "f64");
  for (int64_t n : {0, 1}) ExpectRightRule(of_size(n, ",2", "c128"), "c128");
}

// The cotangent is that of the lower triangle and of the real part of the diagonal, in blocks as in one.
TEST(DerivativeRules, OfCholeskyReadsTheLowerTriangle) {
  const Graph graph =
      Parsed(RuleCase{"Cholesky", "%x = input : T[130,130]", "%y = tensord.linalg.v1.Cholesky(%x)"}, "c128");
  auto vjp = Differentiate(graph, {.mode = DerivativeMode::kVjp, .wrt = {}, .keep_outputs = false});
  ASSERT_TRUE(vjp.ok()) << vjp.status();
  const auto guards = InferTypes(&*vjp);
  ASSERT_TRUE(guards.ok()) << guards.status();
  constexpr int64_t kSize = 130;
  std::mt19937_64 random(5);
  std::vector<Literal> arguments = RandomArguments(*vjp, 0.2, 0.9, &random);
  auto* const a = reinterpret_cast<std::complex<double>*>(arguments[0].mutable_data());
  for (int64_t i = 0; i < kSize; ++i) a[i * kSize + i] += 100;
  const auto results = EvaluateReference(*vjp, *guards, arguments);
  ASSERT_TRUE(results.ok()) << results.status();
  const auto* const slope = reinterpret_cast<const std::complex<double>*>((*results)[0].bytes().data());
  for (int64_t j = 0; j < kSize; ++j) {
    for (int64_t i = 0; i < j; ++i) ASSERT_EQ(slope[j * kSize + i], 0.0) << i << " " << j;
    ASSERT_EQ(slope[j * kSize + j].imag(), 0) << j;
    ASSERT_NE(slope[j * kSize + j].real(), 0) << j;
  }
}

// Matrices of any size add some hundreds of nodes.
TEST(DerivativeRules, OfCholeskyHasBoundedlyManyBlocks) {
  for (const int64_t n : {1024, 5000, 1 << 20}) {
    const Graph graph = Parsed(
        RuleCase{"Cholesky", absl::StrCat("%x = input : T[", n, ",", n, "]"), "%y = tensord.linalg.v1.Cholesky(%x)"},
        "f64");
    const auto vjp = Differentiate(graph, {.mode = DerivativeMode::kVjp, .wrt = {}, .keep_outputs = false});
    ASSERT_TRUE(vjp.ok()) << vjp.status();
    EXPECT_LT(vjp->nodes().size(), 500) << n;
  }
}

TEST(DerivativeRules, AreThoseOfFourierTransforms) {
  for (const char* norm : {"backward", "ortho", "forward"}) {
    for (const char* call : {"kind = fft, axes = [0]", "kind = ifft, axes = [1, 0]", "kind = fft, axes = [0, 0]",
                             "kind = fft, axes = [0, 1], lengths = [3, 7]", "kind = irfft, axes = [1]",
                             "kind = irfft, axes = [0, 1]", "kind = irfft, axes = [1, 1]",
                             "kind = irfft, axes = [1], lengths = [4]", "kind = irfft, axes = [1], lengths = [13]"}) {
      const RuleCase c{call, "%x = input : T[4,5]",
                       absl::StrCat("%y = tensord.fft.v1.Fft(%x) {", call, ", norm = ", norm, "}")};
      ExpectRightRule(c, "f64");
      ExpectRightRule(c, "c128");
    }
    for (const char* call : {"kind = rfft, axes = [1]", "kind = rfft, axes = [1, 0]", "kind = rfft, axes = [0, 0]",
                             "kind = rfft, axes = [1, 0, 1]", "kind = rfft, axes = [1, 1], lengths = [4, 7]",
                             "kind = rfft, axes = [0], lengths = [3]", "kind = rfft, axes = [1], lengths = [8]"}) {
      ExpectRightRule(
          {call, "%x = input : T[4,5]", absl::StrCat("%y = tensord.fft.v1.Fft(%x) {", call, ", norm = ", norm, "}")},
          "f64");
    }
  }
}

}  // namespace
}  // namespace tensord
