#include "engine/families/linalg/factorizations.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/families/linalg/equilibration.h"
#include "engine/families/linalg/host_matrix.h"
#include "engine/families/linalg/matrix_refusal.h"
#include "engine/families/linalg/scaled_product.h"
#include "engine/families/linalg/textbook_factorizations.h"

namespace tensord {
namespace {

// Returns the factors of a matrix with a NaN or an infinity: nothing is permuted, and all computed numbers are NaN.
LuFactors NaNFactors(const HostMatrix& a) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  LuFactors lu{.packed = HostMatrix(a.rows(), a.columns())};
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < a.rows(); ++i) lu.packed(i, j) = Complex128(kNaN, kNaN);
  }
  for (int64_t i = 0; i < a.rows(); ++i) lu.order.push_back(i);
  return lu;
}

// Returns the exponent of one matrix of a batch.
int64_t ExponentOf(const Literal& exponents, int64_t b) {
  const size_t at = static_cast<size_t>(b);
  return static_cast<int64_t>(exponents.dtype() == DType::kF32 ? exponents.values<float>()[at]
                                                               : exponents.values<double>()[at]);
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
  const TensorType reals = ScalarsLike(t, RealPartOf(t.dtype));
  if (context.num_operands() > 1) {
    const TensorType& exponents = context.operand(1);
    if (exponents.dtype != reals.dtype) {
      return Refuse(Refusal::kDtypeMismatch,
                    absl::StrCat("the exponents must be ", Name(reals.dtype), ", and are ", ToString(exponents)));
    }
    RETURN_IF_ERROR(context.RequireSameShape(reals, exponents, "T's batch and the exponents"));
  }
  return ResultTypes{ScalarsLike(t, t.dtype), ScalarsLike(t, t.dtype), reals};
}

absl::Status ReferenceTriangularDeterminant(const ReferenceCall& call) {
  const Literal& t = *call.operands[0];
  for (int64_t b = 0; b < BatchSize(t.shape()); ++b) {
    const HostMatrix matrix = ReadMatrix(t, b);
    ScaledProduct<Complex128> product;
    for (int64_t i = 0; i < matrix.rows(); ++i) product.Multiply(matrix(i, i));
    if (call.operands.size() > 1) product.MultiplyByPowerOfTwo(ExponentOf(*call.operands[1], b));
    WriteVector(std::vector<Complex128>{product.value()}, b, &call.results[0]);
    WriteVector(std::vector<Complex128>{product.sign()}, b, &call.results[1]);
    WriteVector(std::vector<double>{product.log_modulus()}, b, &call.results[2]);
  }
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferEquilibrate(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireSquareMatrices(context, a, "the operand"));
  return ResultTypes{a, ScalarsLike(a, RealPartOf(a.dtype))};
}

absl::Status ReferenceEquilibrate(const ReferenceCall& call) {
  const Literal& a = *call.operands[0];
  const int64_t n = a.shape()[0];
  VisitDType(a.dtype(), [&]<typename T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || scalar::Complex<T>) {
      for (int64_t b = 0; b < BatchSize(a.shape()); ++b) {
        const T* const matrix = a.values<T>().data() + b * n * n;
        T* const divided = call.results[0].mutable_values<T>().data() + b * n * n;
        const Equilibration<T> equilibration(matrix, n);
        for (int64_t i = 0; i < n * n; ++i) divided[i] = equilibration.Divided(matrix[i], i % n, i / n);
        WriteVector(std::vector<double>{static_cast<double>(equilibration.exponent())}, b, &call.results[1]);
      }
    }
  });
  return absl::OkStatus();
}

double EntriesWork(const WorkCall& call) {
  double entries = 1;
  for (const int64_t size : call.operands[0].shape) entries *= static_cast<double>(size);
  return entries;
}

double DiagonalWork(const WorkCall& call) {
  const Shape& shape = call.operands[0].shape;
  return static_cast<double>(BatchSize(shape)) * static_cast<double>(shape[0]);
}

}  // namespace tensord
