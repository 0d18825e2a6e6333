#ifndef TENSORD_BACKENDS_CPU_JOINS_TENSOR_BOX_H_
#define TENSORD_BACKENDS_CPU_JOINS_TENSOR_BOX_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "engine/tensor/shape.h"

namespace tensord::cpu {

// An axis in equal parts.
struct AxisCut {
  size_t axis = 0;
  int64_t parts = 1;
};

// Returns the number of blocks that these cuts of a tensor make.
int64_t NumBlocks(absl::Span<const AxisCut> cuts);

// A block's part of a dense tensor: one part of each cut axis, and all of the others. It lies densely. A value type.
class TensorBox {
 public:
  // The parts are divisors of the sizes. `order`: the axes, the fastest in the box first; empty: as they are.
  TensorBox(const Shape& whole, absl::Span<const AxisCut> cuts, absl::Span<const size_t> order = {});

  const Shape& sizes() const { return sizes_; }
  // Returns the stride in the box of an axis that has that stride in the whole tensor. Axes of one element have any.
  int64_t StrideInBox(int64_t stride) const;

 private:
  Shape whole_;
  Shape sizes_;
  Shape strides_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_TENSOR_BOX_H_
