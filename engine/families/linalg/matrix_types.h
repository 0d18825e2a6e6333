#ifndef TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_TYPES_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_TYPES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/inference.h"
#include "engine/ir/op_def.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

// Types of batches of matrices: the first two axes are the rows and the columns, every further one is batch.

// The dtypes of linear algebra.
inline constexpr DTypeSet kFieldDTypes = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};

// Fails with DTYPE_UNSUPPORTED for other dtypes, RANK_MISMATCH if there are no two axes.
absl::Status RequireMatrices(const TensorType& type, absl::string_view what);
// The same, and as many rows as columns.
absl::Status RequireSquareMatrices(InferContext& context, const TensorType& type, absl::string_view what);
// Two operands of one dtype and rank, and of the same batch axes.
absl::Status RequireSameBatch(InferContext& context, const TensorType& a, const TensorType& b, absl::string_view what);

absl::StatusOr<Dim> SmallerOf(const Dim& a, const Dim& b);

// Returns the type of matrices with the batch axes of `like`.
TensorType MatricesLike(const TensorType& like, DType dtype, const Dim& rows, const Dim& columns);
TensorType VectorsLike(const TensorType& like, DType dtype, const Dim& size);
TensorType ScalarsLike(const TensorType& like, DType dtype);

// Returns the work to take the first operand's matrices apart, m·n·min(m, n) each, times the factor of eigenvalues, to
// make the matrices of the results of reflectors, and to apply them to the columns of the second operand.
double MatrixWork(const WorkCall& call);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_TYPES_H_
