#include "engine/families/linalg/matrix_types.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"

namespace tensord {

absl::Status RequireMatrices(const TensorType& type, absl::string_view what) {
  RETURN_IF_ERROR(CheckDType(type.dtype, kFieldDTypes, what));
  if (type.rank() >= 2) return absl::OkStatus();
  return Refuse(Refusal::kRankMismatch,
                absl::StrCat(what, " must be matrices, of rank 2 at least, and is ", ToString(type)));
}

absl::Status RequireSquareMatrices(InferContext& context, const TensorType& type, absl::string_view what) {
  RETURN_IF_ERROR(RequireMatrices(type, what));
  return context.RequireEqual(type.shape[0], type.shape[1],
                              absl::StrCat(what, " must be square, and its sizes differ"));
}

absl::Status RequireSameBatch(InferContext& context, const TensorType& a, const TensorType& b, absl::string_view what) {
  RETURN_IF_ERROR(CheckSameDType(a, b, what));
  if (a.rank() != b.rank()) {
    return Refuse(Refusal::kRankMismatch,
                  absl::StrCat(what, " must have one rank, and are ", ToString(a), " and ", ToString(b)));
  }
  for (size_t i = 2; i < a.shape.size(); ++i) {
    RETURN_IF_ERROR(
        context.RequireEqual(a.shape[i], b.shape[i], absl::StrCat("sizes of batch axis ", i, " of ", what, " differ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<Dim> SmallerOf(const Dim& a, const Dim& b) {
  if (a == b) return a;
  Dim smaller = a.extent == Extent::kExact ? b : a;
  ASSIGN_OR_RETURN(smaller.size, DimExpr::Minimum(a.size, b.size));
  return smaller;
}

TensorType MatricesLike(const TensorType& like, DType dtype, const Dim& rows, const Dim& columns) {
  TensorType type{.dtype = dtype, .shape = like.shape};
  type.shape[0] = rows;
  type.shape[1] = columns;
  return type;
}

TensorType VectorsLike(const TensorType& like, DType dtype, const Dim& size) {
  TensorType type{.dtype = dtype, .shape = {size}};
  type.shape.insert(type.shape.end(), like.shape.begin() + 2, like.shape.end());
  return type;
}

TensorType ScalarsLike(const TensorType& like, DType dtype) {
  return {.dtype = dtype, .shape = SymbolicShape(like.shape.begin() + 2, like.shape.end())};
}

double MatrixWork(const WorkCall& call) {
  constexpr double kOfEigenvalues = 10;
  const Shape& shape = call.operands[0].shape;
  double batch = 1;
  for (size_t axis = 2; axis < shape.size(); ++axis) batch *= static_cast<double>(shape[axis]);
  const double m = static_cast<double>(shape[0]), n = static_cast<double>(shape[1]);
  double sides = 0;
  // Vectors of a batch have two axes, too.
  const auto are_matrices = [&shape](const ConcreteType& type) {
    return type.rank() == static_cast<int>(shape.size());
  };
  if (call.operands.size() > 1 && are_matrices(call.operands[1])) {
    const Shape& right = call.operands[1].shape;
    sides = static_cast<double>(std::max(right[0], right[1]));
  }
  double made = 0;
  for (const ConcreteType& result : call.results) {
    if (are_matrices(result)) made += static_cast<double>(result.shape[0]) * static_cast<double>(result.shape[1]);
  }
  return batch * (m * n * (kOfEigenvalues * std::min(m, n) + sides) + made * std::min(m, n));
}

}  // namespace tensord
