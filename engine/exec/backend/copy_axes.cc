#include "engine/exec/backend/copy_axes.h"

#include <algorithm>

namespace tensord {

int64_t NumElements(absl::Span<const CopyAxis> axes) {
  int64_t elements = 1;
  for (const CopyAxis& axis : axes) elements *= axis.size;
  return elements;
}

CopyAxes MergedCopyAxes(absl::Span<const CopyAxis> axes) {
  CopyAxes kept;
  for (const CopyAxis& axis : axes) {
    if (axis.size != 1) kept.push_back(axis);
  }
  std::sort(kept.begin(), kept.end(), [](const CopyAxis& a, const CopyAxis& b) { return a.dst_stride < b.dst_stride; });
  CopyAxes merged;
  for (const CopyAxis& axis : kept) {
    if (!merged.empty() && axis.dst_stride == merged.back().dst_stride * merged.back().size &&
        axis.src_stride == merged.back().src_stride * merged.back().size) {
      merged.back().size *= axis.size;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

}  // namespace tensord
