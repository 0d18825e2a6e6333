#include "backends/cpu/joins/tensor_box.h"

namespace tensord::cpu {

int64_t NumBlocks(absl::Span<const AxisCut> cuts) {
  int64_t blocks = 1;
  for (const AxisCut& cut : cuts) blocks *= cut.parts;
  return blocks;
}

TensorBox::TensorBox(const Shape& whole, absl::Span<const AxisCut> cuts, absl::Span<const size_t> order)
    : whole_(whole), sizes_(whole), strides_(whole.size(), 1) {
  for (const AxisCut& cut : cuts) sizes_[cut.axis] /= cut.parts;
  int64_t stride = 1;
  for (size_t i = 0; i < whole.size(); ++i) {
    const size_t axis = order.empty() ? i : order[i];
    strides_[axis] = stride;
    stride *= sizes_[axis];
  }
}

int64_t TensorBox::StrideInBox(int64_t stride) const {
  int64_t own = 1;
  for (size_t axis = 0; axis < whole_.size(); own *= whole_[axis++]) {
    if (own == stride && whole_[axis] > 1) return strides_[axis];
  }
  return 0;
}

}  // namespace tensord::cpu
