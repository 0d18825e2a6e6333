#include "engine/passes/layout/slice_ranges.h"

#include <limits>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/ops/core_ops.h"

namespace tensord {

SliceRange RangeOf(const Node& slice, size_t axis) {
  const std::vector<int64_t>& strides = slice.attrs.Ints("strides");
  return {slice.attrs.Ints("start_indices")[axis], slice.attrs.Ints("limit_indices")[axis],
          strides.empty() ? 1 : strides[axis]};
}

SliceRanges RangesOf(const Node& slice) {
  SliceRanges ranges(slice.attrs.Ints("start_indices").size());
  for (size_t axis = 0; axis < ranges.size(); ++axis) ranges[axis] = RangeOf(slice, axis);
  return ranges;
}

Attributes SliceAttributes(const SliceRanges& ranges) {
  std::vector<int64_t> starts, limits, strides;
  bool strided = false;
  for (const SliceRange& range : ranges) {
    starts.push_back(range.start);
    limits.push_back(range.limit);
    strides.push_back(range.stride);
    strided = strided || range.stride != 1;
  }
  if (!strided) strides.clear();
  Attributes attrs(Def(CoreOp::kSlice).attrs);
  attrs.Set("start_indices", std::move(starts)).Set("limit_indices", std::move(limits));
  attrs.Set("strides", std::move(strides));
  return attrs;
}

std::optional<SliceRange> Joined(const SliceRange& inner, const SliceRange& outer, int64_t length) {
  const std::optional<int64_t> offset = CheckedMul(outer.start, inner.stride);
  if (!offset.has_value()) return std::nullopt;
  const std::optional<int64_t> start = CheckedAdd(inner.start, *offset);
  if (!start.has_value()) return std::nullopt;
  // A start past the end belongs to an empty range.
  if (length == 0) return SliceRange{inner.start, inner.start, 1};
  if (length == 1) return SliceRange{*start, *start + 1, 1};
  const std::optional<int64_t> stride = CheckedMul(inner.stride, outer.stride);
  if (!stride.has_value()) return std::nullopt;
  const std::optional<int64_t> reach = CheckedMul(*stride, length - 1);
  if (!reach.has_value()) return std::nullopt;
  const std::optional<int64_t> last = CheckedAdd(*start, *reach);
  if (!last.has_value() || *last == std::numeric_limits<int64_t>::max()) return std::nullopt;
  return SliceRange{*start, *last + 1, *stride};
}

}  // namespace tensord
