#ifndef TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_REFUSAL_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_REFUSAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/refusal.h"
#include "engine/tensor/shape.h"

namespace tensord {

// Why a run ends at one matrix of a batch. The message says which: "the matrix at batch index [2,0] is singular: …";
// `shape` is the operand's, whose axes from the third on are batch, and `matrix` counts in their column-major order.
// `info` is what LAPACK calls so: the 1-based pivot at which the algorithm gave up, or how many values are missing.
absl::Status RefuseMatrix(Refusal refusal, absl::Span<const int64_t> shape, int64_t matrix, int64_t info);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_REFUSAL_H_
