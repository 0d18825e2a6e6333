#include <string>

#include "absl/strings/str_cat.h"
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
