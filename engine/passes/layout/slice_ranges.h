#ifndef TENSORD_ENGINE_PASSES_LAYOUT_SLICE_RANGES_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_SLICE_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ir/graph.h"

namespace tensord {

// The elements of one axis that a slice keeps: start, start + stride, … below limit.
struct SliceRange {
  int64_t start = 0;
  int64_t limit = 0;
  int64_t stride = 1;
  friend auto operator<=>(const SliceRange&, const SliceRange&) = default;
};
using SliceRanges = std::vector<SliceRange>;  // by axis

// Returns the range of a slice node.
SliceRange RangeOf(const Node& slice, size_t axis);
SliceRanges RangesOf(const Node& slice);
Attributes SliceAttributes(const SliceRanges& ranges);

// Returns the elements `outer` of the elements `inner`, of which there are `length`; nothing on overflow.
std::optional<SliceRange> Joined(const SliceRange& inner, const SliceRange& outer, int64_t length);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_SLICE_RANGES_H_
