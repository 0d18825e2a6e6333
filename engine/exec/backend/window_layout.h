#ifndef TENSORD_ENGINE_EXEC_BACKEND_WINDOW_LAYOUT_H_
#define TENSORD_ENGINE_EXEC_BACKEND_WINDOW_LAYOUT_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/ops/index_windows.h"
#include "engine/tensor/shape.h"

namespace tensord {

// An axis of a window: its steps, in elements, in the operand and in the tensor of windows.
struct WindowAxis {
  int64_t size = 1;
  int64_t operand_stride = 0;
  int64_t windows_stride = 0;
  int64_t operand_axis = 0;
};

// The windows of a Gather or a Scatter, for tensors of known sizes, as steps in elements. The window at batch index b
// begins, in the operand, at the sum over the batch axes of b's coordinates times operand_stride, and over the
// components of start times operand_stride. Components are read from the indices at the sum of b's coordinates times
// indices_stride, and indices_offset.
struct WindowLayout {
  struct BatchAxis {
    int64_t size = 1;
    int64_t indices_stride = 0;
    int64_t operand_stride = 0;
    int64_t windows_stride = 0;
    int64_t operand_axis = -1;  // that it walks along
  };
  struct Component {
    int64_t indices_offset = 0;
    int64_t operand_stride = 0;
    int64_t limit = 0;  // the largest start that fits
    int64_t operand_axis = 0;
  };

  // `batch_order`: the batch axes of the indices, the fastest first. Those that are one run are merged.
  static WindowLayout Of(const WindowAxes& axes, const Shape& operand, const ConcreteType& indices,
                         const Shape& windows, absl::Span<const int64_t> batch_order);

  // Tells whether the start along an axis of the operand comes from an index vector.
  bool IsIndexed(int64_t operand_axis) const;

  int64_t num_windows = 0;  // that have elements and may fit; 0 if there is nothing to do
  int64_t window_elements = 1;
  absl::InlinedVector<WindowAxis, 6> window;  // axes of size other than 1
  absl::InlinedVector<BatchAxis, 4> batch;    // the fastest first; at least one
  absl::InlinedVector<Component, 4> components;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_WINDOW_LAYOUT_H_
