#ifndef TENSORD_ENGINE_OPS_AXIS_CHECKS_H_
#define TENSORD_ENGINE_OPS_AXIS_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

// Fails with AXIS_OUT_OF_RANGE unless 0 <= axis < rank; `what` names the attribute.
absl::Status CheckAxis(int64_t axis, int64_t rank, absl::string_view what);
// Each in range (AXIS_OUT_OF_RANGE) and named once (AXIS_DUPLICATE).
absl::Status CheckAxes(absl::Span<const int64_t> axes, int64_t rank, absl::string_view what);
// Checks attributes that only the engine sets: ATTRIBUTE_INVALID unless it names `count` different axes, each in range.
absl::Status CheckEngineAxes(absl::Span<const int64_t> axes, int64_t count, int64_t rank, absl::string_view what);
// Fails with ATTRIBUTE_INVALID unless the list has `count` entries.
absl::Status CheckLength(size_t length, int64_t count, absl::string_view what);
// Fails with DTYPE_UNSUPPORTED unless the dtype is in the set.
absl::Status CheckDType(DType dtype, DTypeSet allowed, absl::string_view what);
// Fails with DTYPE_MISMATCH unless both operands have one dtype.
absl::Status CheckSameDType(const TensorType& a, const TensorType& b, absl::string_view what);

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_AXIS_CHECKS_H_
