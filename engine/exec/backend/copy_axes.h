#ifndef TENSORD_ENGINE_EXEC_BACKEND_COPY_AXES_H_
#define TENSORD_ENGINE_EXEC_BACKEND_COPY_AXES_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace tensord {

// One axis of a copy: its size and the step, in elements, on either side. A source stride of 0 repeats an element, a
// negative one walks backwards. Destination strides are positive and give every element a place of its own.
struct CopyAxis {
  int64_t size = 0;
  int64_t src_stride = 0;
  int64_t dst_stride = 0;
  friend bool operator==(const CopyAxis&, const CopyAxis&) = default;
};
using CopyAxes = absl::InlinedVector<CopyAxis, 8>;

// Returns the product of the sizes.
int64_t NumElements(absl::Span<const CopyAxis> axes);

// Drops axes of size 1, orders the rest by destination stride and merges neighbours that are one run on both sides.
CopyAxes MergedCopyAxes(absl::Span<const CopyAxis> axes);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_COPY_AXES_H_
