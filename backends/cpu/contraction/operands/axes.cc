#include "backends/cpu/contraction/operands/axes.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/rounding.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kEvenLength = 8;  // parts of long axes are multiples, which suits vectors

}  // namespace

DotCut CutAxes(const DotAxisList& axes, int64_t most) {
  DotCut cut;
  int64_t elements = 1;
  size_t i = 0;
  for (; i < axes.size() && axes[i].size <= most / elements; ++i) {
    cut.inner.push_back(axes[i]);
    elements *= axes[i].size;
  }
  cut.last = cut.inner;
  if (i == axes.size()) return cut;
  DotAxis axis = axes[i];
  const int64_t parts = CeilDiv(axis.size, std::max<int64_t>(1, most / elements));
  int64_t length = CeilDiv(axis.size, parts);
  if (length >= 4 * kEvenLength) length = CeilDiv(length, kEvenLength) * kEvenLength;
  const int64_t last_length = axis.size - (CeilDiv(axis.size, length) - 1) * length;
  cut.inner.push_back({length, axis.strides});
  cut.last.push_back({last_length, axis.strides});
  cut.has_shorter_last = last_length < length;
  axis.size = CeilDiv(axis.size, length);
  for (int64_t& stride : axis.strides) stride *= length;
  cut.outer.push_back(axis);
  cut.outer.insert(cut.outer.end(), axes.begin() + static_cast<ptrdiff_t>(i) + 1, axes.end());
  return cut;
}

}  // namespace tensord::cpu
