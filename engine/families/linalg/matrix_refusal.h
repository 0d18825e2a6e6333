#ifndef TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_REFUSAL_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_REFUSAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/refusal.h"
#include "engine/tensor/shape.h"

namespace tensord {

// Refuses one matrix of a batch and so ends the run. The message names it: "the matrix at batch index [2,0] is
// singular: …". `shape` is the operand's, whose axes from the third on are batch, and `matrix` counts in their
// column-major order. `info` is LAPACK's: the 1-based pivot at which the algorithm gave up, or the number of missing
// values.
absl::Status RefuseMatrix(Refusal refusal, absl::Span<const int64_t> shape, int64_t matrix, int64_t info);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_REFUSAL_H_
