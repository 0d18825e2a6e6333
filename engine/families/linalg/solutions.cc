#include "engine/families/linalg/solutions.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/families/linalg/host_matrix.h"
#include "engine/families/linalg/matrix_refusal.h"
#include "engine/families/linalg/textbook_factorizations.h"

namespace tensord {
namespace {

// `fitting` is the axis of B that has A's size.
absl::StatusOr<ResultTypes> InferSolution(InferContext& context, size_t fitting) {
  const TensorType &a = context.operand(0), &b = context.operand(1);
  RETURN_IF_ERROR(RequireSquareMatrices(context, a, "A"));
  RETURN_IF_ERROR(RequireSameBatch(context, a, b, "A and B"));
  RETURN_IF_ERROR(context.RequireEqual(
      a.shape[0], b.shape[fitting],
      fitting == 0 ? "A's size is not B's number of rows" : "A's size is not B's number of columns"));
  return ResultTypes{b};
}

HostMatrix Transposed(const HostMatrix& a) {
  HostMatrix transposed(a.columns(), a.rows());
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < a.rows(); ++i) transposed(j, i) = a(i, j);
  }
  return transposed;
}

}  // namespace

absl::StatusOr<ResultTypes> InferSolve(InferContext& context) { return InferSolution(context, 0); }

absl::Status ReferenceSolve(const ReferenceCall& call) {
  const Literal &a = *call.operands[0], &b = *call.operands[1];
  if (b.num_elements() == 0) return absl::OkStatus();
  const int64_t batch = BatchSize(a.shape());
  for (int64_t i = 0; i < batch; ++i) {
    const HostMatrix matrix = ReadMatrix(a, i);
    if (!matrix.IsFinite()) {
      WriteNaN(i, batch, &call.results[0]);
      continue;
    }
    const LuFactors lu = FactorLu(matrix);
    if (const auto pivot = lu.ZeroPivot(); pivot.has_value()) {
      return RefuseMatrix(Refusal::kMatrixSingular, a.shape(), i, *pivot + 1);
    }
    WriteMatrix(SolveLu(lu, ReadMatrix(b, i)), i, &call.results[0]);
  }
  return absl::OkStatus();
}

absl::StatusOr<ResultTypes> InferTriangularSolve(InferContext& context) {
  return InferSolution(context, context.attrs().Flag("left_side") ? 0 : 1);
}

absl::Status ReferenceTriangularSolve(const ReferenceCall& call) {
  const Literal &a = *call.operands[0], &b = *call.operands[1];
  const bool left = call.attrs.Flag("left_side"), unit = call.attrs.Flag("unit_diagonal");
  const TransposeA transpose = static_cast<TransposeA>(call.attrs.Int("transpose_a"));
  for (int64_t i = 0; i < BatchSize(a.shape()); ++i) {
    HostMatrix t = ReadMatrix(a, i);
    bool lower = call.attrs.Flag("lower");
    if (transpose != TransposeA::kNoTranspose) {
      t = transpose == TransposeA::kTranspose ? Transposed(t) : t.Adjoint();
      lower = !lower;
    }
    if (left) {
      WriteMatrix(SolveTriangle(t, lower, unit, ReadMatrix(b, i)), i, &call.results[0]);
    } else {  // X T = B is T^T X^T = B^T
      const HostMatrix x = SolveTriangle(Transposed(t), !lower, unit, Transposed(ReadMatrix(b, i)));
      WriteMatrix(Transposed(x), i, &call.results[0]);
    }
  }
  return absl::OkStatus();
}

}  // namespace tensord
