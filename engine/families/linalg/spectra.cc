#include "engine/families/linalg/spectra.h"

#include <optional>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/families/linalg/host_matrix.h"
#include "engine/families/linalg/matrix_refusal.h"
#include "engine/families/linalg/textbook_spectra.h"

namespace tensord {
namespace {

HostMatrix LowerTriangle(HostMatrix a) {
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < j; ++i) a(i, j) = 0;
  }
  return a;
}

DType ComplexDTypeOf(DType dtype) { return ComplexOf(dtype).value_or(dtype); }

// Decomposes matrix after matrix and hands each to `write` with its place in the batch; a matrix that is not finite
// gives NaN. `info` is LAPACK's count of missing values for a matrix whose iteration fails: here all.
template <typename Read, typename Decompose, typename Write>
absl::Status ForEachMatrix(const ReferenceCall& call, const Read& read, const Decompose& decompose,
                           const Write& write) {
  const Literal& a = *call.operands[0];
  const int64_t batch = BatchSize(a.shape());
  for (int64_t b = 0; b < batch; ++b) {
    const HostMatrix matrix = read(ReadMatrix(a, b));
    if (!matrix.IsFinite()) {
      for (Literal& result : call.results) WriteNaN(b, batch, &result);
      continue;
    }
    const auto decomposition = decompose(matrix);
    if (!decomposition.has_value()) return RefuseMatrix(Refusal::kNoConvergence, a.shape(), b, matrix.columns());
    write(*decomposition, b);
  }
  return absl::OkStatus();
}

HostMatrix Whole(HostMatrix a) { return a; }

}  // namespace

absl::StatusOr<ResultTypes> InferSvd(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireMatrices(a, "the operand"));
  ASSIGN_OR_RETURN(const Dim k, SmallerOf(a.shape[0], a.shape[1]));
  const bool full = context.attrs().Flag("full");
  return ResultTypes{MatricesLike(a, a.dtype, a.shape[0], full ? a.shape[0] : k),
                     VectorsLike(a, RealPartOf(a.dtype), k),
                     MatricesLike(a, a.dtype, full ? a.shape[1] : k, a.shape[1])};
}

absl::Status ReferenceSvd(const ReferenceCall& call) {
  return ForEachMatrix(call, &Whole, &DecomposeSingular, [&](const SingularValues& svd, int64_t b) {
    WriteMatrix(svd.u.Columns(call.results[0].shape()[1]), b, &call.results[0]);
    WriteVector(svd.s, b, &call.results[1]);
    WriteMatrix(svd.vh.Rows(call.results[2].shape()[0]), b, &call.results[2]);
  });
}

absl::StatusOr<ResultTypes> InferSvdValues(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireMatrices(a, "the operand"));
  ASSIGN_OR_RETURN(const Dim k, SmallerOf(a.shape[0], a.shape[1]));
  return ResultTypes{VectorsLike(a, RealPartOf(a.dtype), k)};
}

absl::Status ReferenceSvdValues(const ReferenceCall& call) {
  return ForEachMatrix(call, &Whole, &DecomposeSingular,
                       [&](const SingularValues& svd, int64_t b) { WriteVector(svd.s, b, &call.results[0]); });
}

absl::StatusOr<ResultTypes> InferEigh(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireSquareMatrices(context, a, "the operand"));
  return ResultTypes{VectorsLike(a, RealPartOf(a.dtype), a.shape[0]), a};
}

absl::Status ReferenceEigh(const ReferenceCall& call) {
  return ForEachMatrix(call, &LowerTriangle, &DecomposeHermitian, [&](const HermitianEigen& eigen, int64_t b) {
    WriteVector(eigen.values, b, &call.results[0]);
    WriteMatrix(eigen.vectors, b, &call.results[1]);
  });
}

absl::StatusOr<ResultTypes> InferEighValues(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireSquareMatrices(context, a, "the operand"));
  return ResultTypes{VectorsLike(a, RealPartOf(a.dtype), a.shape[0])};
}

absl::Status ReferenceEighValues(const ReferenceCall& call) {
  return ForEachMatrix(call, &LowerTriangle, &DecomposeHermitian,
                       [&](const HermitianEigen& eigen, int64_t b) { WriteVector(eigen.values, b, &call.results[0]); });
}

absl::StatusOr<ResultTypes> InferEig(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireSquareMatrices(context, a, "the operand"));
  const DType dtype = ComplexDTypeOf(a.dtype);
  return ResultTypes{VectorsLike(a, dtype, a.shape[0]), MatricesLike(a, dtype, a.shape[0], a.shape[1])};
}

absl::Status ReferenceEig(const ReferenceCall& call) {
  return ForEachMatrix(call, &Whole, &DecomposeGeneral, [&](const GeneralEigen& eigen, int64_t b) {
    WriteVector(eigen.values, b, &call.results[0]);
    WriteMatrix(eigen.vectors, b, &call.results[1]);
  });
}

absl::StatusOr<ResultTypes> InferEigValues(InferContext& context) {
  const TensorType& a = context.operand(0);
  RETURN_IF_ERROR(RequireSquareMatrices(context, a, "the operand"));
  return ResultTypes{VectorsLike(a, ComplexDTypeOf(a.dtype), a.shape[0])};
}

absl::Status ReferenceEigValues(const ReferenceCall& call) {
  return ForEachMatrix(call, &Whole, &DecomposeGeneral,
                       [&](const GeneralEigen& eigen, int64_t b) { WriteVector(eigen.values, b, &call.results[0]); });
}

}  // namespace tensord
