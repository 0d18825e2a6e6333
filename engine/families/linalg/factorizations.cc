#include "engine/families/linalg/factorizations.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/families/linalg/host_matrix.h"
#include "engine/families/linalg/matrix_refusal.h"
#include "engine/families/linalg/scaled_product.h"
#include "engine/families/linalg/textbook_factorizations.h"

namespace tensord {
namespace {

// What a matrix with a NaN or an infinity has for factors: nothing is permuted, and all that is computed is NaN.
LuFactors NaNFactors(const HostMatrix& a) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  LuFactors lu{.packed = HostMatrix(a.rows(), a.columns())};
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < a.rows(); ++i) lu.packed(i, j) = Complex128(kNaN, kNaN);
  }
  for (int64_t i = 0; i < a.rows(); ++i) lu.order.push_back(i);
  return lu;
}

}  // namespace

absl::StatusOr<ResultTypes> InferCholesky(InferContext& context) {
  RETURN_IF_ERROR(RequireSquareMatrices(context, context.operand(0), "the operand"));
  return ResultTypes{context.operand(0)};
}

absl::Status ReferenceCholesky(const ReferenceCall& call) {
  const Literal& a = *call.operands[0];
  for (int64_t b = 0; b < BatchSize(a.shape()); ++b) {
    const CholeskyFactor factor = FactorCholesky(ReadMatrix(a, b));
    if (factor.pivot.has_value()) {
      return RefuseMatrix(Refusal::kMatrixNotPositiveDefinite, a.shape(), b, *factor.pivot + 1);
    }
    WriteMatrix(factor.lower, b, &call.results[0]);
  }
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferLu(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireMatrices(a, "the operand"));
  ASSIGN_OR_RETURN(const Dim k, SmallerOf(a.shape[0], a.shape[1]));
  return ResultTypes{MatricesLike(a, a.dtype, a.shape[0], a.shape[0]), MatricesLike(a, a.dtype, a.shape[0], k),
                     MatricesLike(a, a.dtype, k, a.shape[1]), ScalarsLike(a, a.dtype)};
}

absl::Status ReferenceLu(const ReferenceCall& call) {
  const Literal& a = *call.operands[0];
  for (int64_t b = 0; b < BatchSize(a.shape()); ++b) {
    const HostMatrix matrix = ReadMatrix(a, b);
    const LuFactors lu = matrix.IsFinite() ? FactorLu(matrix) : NaNFactors(matrix);
    const int64_t m = matrix.rows(), n = matrix.columns(), k = std::min(m, n);
    HostMatrix permutation(m, m), lower = HostMatrix::Identity(m, k), upper(k, n);
    for (int64_t i = 0; i < m; ++i) permutation(i, lu.order[static_cast<size_t>(i)]) = 1;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) {
        if (i > j && j < k) lower(i, j) = lu.packed(i, j);
        if (i <= j && i < k) upper(i, j) = lu.packed(i, j);
      }
    }
    WriteMatrix(permutation, b, &call.results[0]);
    WriteMatrix(lower, b, &call.results[1]);
    WriteMatrix(upper, b, &call.results[2]);
    WriteVector(std::vector<double>{static_cast<double>(lu.parity)}, b, &call.results[3]);
  }
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferQr(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireMatrices(a, "the operand"));
  Dim k = a.shape[0];
  if (!context.attrs().Flag("full")) {
    ASSIGN_OR_RETURN(k, SmallerOf(a.shape[0], a.shape[1]));
  }
  return ResultTypes{MatricesLike(a, a.dtype, a.shape[0], k), MatricesLike(a, a.dtype, k, a.shape[1])};
}

absl::Status ReferenceQr(const ReferenceCall& call) {
  const Literal& a = *call.operands[0];
  for (int64_t b = 0; b < BatchSize(a.shape()); ++b) {
    const QrFactors qr = FactorQr(ReadMatrix(a, b));
    const int64_t k = call.results[0].shape()[1];
    WriteMatrix(qr.q.Columns(k), b, &call.results[0]);
    WriteMatrix(qr.r.Rows(k), b, &call.results[1]);
  }
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferHouseholderQr(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireMatrices(a, "the operand"));
  ASSIGN_OR_RETURN(const Dim k, SmallerOf(a.shape[0], a.shape[1]));
  return ResultTypes{a, VectorsLike(a, a.dtype, k)};
}

absl::Status ReferenceHouseholderQr(const ReferenceCall& call) {
  const Literal& a = *call.operands[0];
  for (int64_t b = 0; b < BatchSize(a.shape()); ++b) {
    const Reflectors reflectors = FactorReflectors(ReadMatrix(a, b));
    WriteMatrix(reflectors.packed, b, &call.results[0]);
    WriteVector(reflectors.tau, b, &call.results[1]);
  }
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferTriangularDeterminant(InferContext& context) {
  const TensorType& t = context.operand(0);
  RETURN_IF_ERROR(RequireSquareMatrices(context, t, "the operand"));
  return ResultTypes{ScalarsLike(t, t.dtype), ScalarsLike(t, t.dtype), ScalarsLike(t, RealPartOf(t.dtype))};
}

absl::Status ReferenceTriangularDeterminant(const ReferenceCall& call) {
  const Literal& t = *call.operands[0];
  for (int64_t b = 0; b < BatchSize(t.shape()); ++b) {
    const HostMatrix matrix = ReadMatrix(t, b);
    ScaledProduct<Complex128> product;
    for (int64_t i = 0; i < matrix.rows(); ++i) product.Multiply(matrix(i, i));
    WriteVector(std::vector<Complex128>{product.value()}, b, &call.results[0]);
    WriteVector(std::vector<Complex128>{product.sign()}, b, &call.results[1]);
    WriteVector(std::vector<double>{product.log_modulus()}, b, &call.results[2]);
  }
  return absl::OkStatus();
}

double DiagonalWork(const WorkCall& call) {
  const Shape& shape = call.operands[0].shape;
  return static_cast<double>(BatchSize(shape)) * static_cast<double>(shape[0]);
}

}  // namespace tensord
