#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "engine/families/linalg/equilibration.h"
#include "engine/families/linalg/host_matrix.h"
#include "engine/families/linalg/matrix_compositions.h"
#include "engine/families/linalg/matrix_refusal.h"
#include "engine/families/linalg/scaled_product.h"
#include "engine/families/linalg/singular_cutoff.h"
#include "engine/families/linalg/textbook_factorizations.h"
#include "engine/families/linalg/textbook_spectra.h"

namespace tensord {
namespace {

// The singular values up to this are taken for zero.
double CutoffOf(const ReferenceCall& call, const SingularValues& svd) {
  const Shape& shape = call.operands[0]->shape();
  const double size = static_cast<double>(std::max(shape[0], shape[1]));
  const double relative = call.attrs.MaybeReal("relative_cutoff").value_or(size * EpsilonOf(call.operands[0]->dtype()));
  return svd.s.empty() ? 0 : relative * svd.s[0];
}

// V diag(1/s) U^H B.
HostMatrix ApplyPseudoInverse(const SingularValues& svd, double cutoff, const HostMatrix& b) {
  const int64_t k = static_cast<int64_t>(svd.s.size());
  HostMatrix projected = Product(svd.u.Columns(k).Adjoint(), b);
  for (int64_t i = 0; i < k; ++i) {
    const double s = svd.s[static_cast<size_t>(i)];
    for (int64_t j = 0; j < projected.columns(); ++j) projected(i, j) *= s > cutoff ? 1 / s : 0;
  }
  return Product(svd.vh.Rows(k).Adjoint(), projected);
}

// Calls use(svd, b) for every finite matrix; the others give NaN, or 0 for an integer.
template <typename Use>
absl::Status ForEachSvd(const ReferenceCall& call, const Use& use) {
  const Literal& a = *call.operands[0];
  const int64_t batch = BatchSize(a.shape());
  for (int64_t b = 0; b < batch; ++b) {
    const HostMatrix matrix = ReadMatrix(a, b);
    if (!matrix.IsFinite()) {
      if (call.results[0].dtype() != DType::kI64) WriteNaN(b, batch, &call.results[0]);
      continue;
    }
    const std::optional<SingularValues> svd = DecomposeSingular(matrix);
    if (!svd.has_value()) return RefuseMatrix(Refusal::kNoConvergence, a.shape(), b, matrix.columns());
    use(*svd, b);
  }
  return absl::OkStatus();
}

// Calls use(lu, e, b) for every matrix that is finite, of 2^-e times its determinant; the others give NaN.
template <typename Use>
void ForEachLu(const ReferenceCall& call, const Use& use) {
  const Literal& a = *call.operands[0];
  const int64_t batch = BatchSize(a.shape());
  for (int64_t b = 0; b < batch; ++b) {
    const HostMatrix matrix = ReadMatrix(a, b);
    if (matrix.IsFinite()) {
      const int64_t n = matrix.rows();
      const Equilibration<Complex128> equilibration(n == 0 ? nullptr : &matrix(0, 0), n);
      HostMatrix divided(n, n);
      for (int64_t i = 0; i < n * n; ++i) {
        divided(i % n, i / n) = equilibration.Divided(matrix(i % n, i / n), i % n, i / n);
      }
      use(FactorLu(divided), equilibration.exponent(), b);
      continue;
    }
    for (Literal& result : call.results) WriteNaN(b, batch, &result);
  }
}

ScaledProduct<Complex128> DeterminantOf(const LuFactors& lu, int64_t exponent) {
  ScaledProduct<Complex128> product;
  for (int64_t i = 0; i < lu.packed.rows(); ++i) product.Multiply(lu.packed(i, i));
  product.Multiply(lu.parity);
  product.MultiplyByPowerOfTwo(exponent);
  return product;
}

}  // namespace

absl::Status ReferenceInverse(const ReferenceCall& call) {
  const Literal& a = *call.operands[0];
  const int64_t batch = BatchSize(a.shape());
  for (int64_t b = 0; b < batch; ++b) {
    const HostMatrix matrix = ReadMatrix(a, b);
    if (!matrix.IsFinite()) {
      WriteNaN(b, batch, &call.results[0]);
      continue;
    }
    const LuFactors lu = FactorLu(matrix);
    if (const auto pivot = lu.ZeroPivot(); pivot.has_value()) {
      return RefuseMatrix(Refusal::kMatrixSingular, a.shape(), b, *pivot + 1);
    }
    WriteMatrix(SolveLu(lu, HostMatrix::Identity(matrix.rows(), matrix.rows())), b, &call.results[0]);
  }
  return absl::OkStatus();
}

absl::Status ReferenceDeterminant(const ReferenceCall& call) {
  ForEachLu(call, [&](const LuFactors& lu, int64_t exponent, int64_t b) {
    WriteVector(std::vector<Complex128>{DeterminantOf(lu, exponent).value()}, b, &call.results[0]);
  });
  return absl::OkStatus();
}

absl::Status ReferenceSignLogDeterminant(const ReferenceCall& call) {
  ForEachLu(call, [&](const LuFactors& lu, int64_t exponent, int64_t b) {
    const ScaledProduct<Complex128> determinant = DeterminantOf(lu, exponent);
    WriteVector(std::vector<Complex128>{determinant.sign()}, b, &call.results[0]);
    WriteVector(std::vector<double>{determinant.log_modulus()}, b, &call.results[1]);
  });
  return absl::OkStatus();
}

absl::Status ReferencePseudoInverse(const ReferenceCall& call) {
  const int64_t m = call.operands[0]->shape()[0];
  return ForEachSvd(call, [&](const SingularValues& svd, int64_t b) {
    WriteMatrix(ApplyPseudoInverse(svd, CutoffOf(call, svd), HostMatrix::Identity(m, m)), b, &call.results[0]);
  });
}

absl::Status ReferenceLeastSquares(const ReferenceCall& call) {
  return ForEachSvd(call, [&](const SingularValues& svd, int64_t b) {
    WriteMatrix(ApplyPseudoInverse(svd, CutoffOf(call, svd), ReadMatrix(*call.operands[1], b)), b, &call.results[0]);
  });
}

absl::Status ReferenceMatrixRank(const ReferenceCall& call) {
  return ForEachSvd(call, [&](const SingularValues& svd, int64_t b) {
    const double cutoff = CutoffOf(call, svd);
    call.results[0].mutable_values<int64_t>()[static_cast<size_t>(b)] =
        std::count_if(svd.s.begin(), svd.s.end(), [&](double s) { return s > cutoff; });
  });
}

}  // namespace tensord
