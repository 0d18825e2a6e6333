#ifndef TENSORD_BACKENDS_CPU_INDEXING_WINDOW_PLAN_H_
#define TENSORD_BACKENDS_CPU_INDEXING_WINDOW_PLAN_H_

#include <cstdint>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/exec/backend/window_layout.h"
#include "engine/ops/index_windows.h"
#include "engine/tensor/shape.h"

namespace tensord::cpu {

// Axes of size above 1 of a tensor that fits into memory are fewer.
inline constexpr size_t kMaxWindowAxes = 64;

using MergedWindow = absl::InlinedVector<WindowAxis, 6>;
// Merges the axes of a window that are one run in both tensors; the axis `apart` of the operand stays itself.
MergedWindow MergeWindowAxes(absl::Span<const WindowAxis> axes, int64_t apart = -1);

// Calls f(offset in the operand, offset in the tensor of windows) for each element of a window, or of a box of axes.
template <typename F>
void ForEachElement(absl::Span<const WindowAxis> axes, int64_t begin, int64_t end, const F& f) {
  int64_t index[kMaxWindowAxes];
  int64_t operand = 0, windows = 0, rest = begin;
  for (size_t k = 0; k < axes.size(); ++k) {
    index[k] = rest % axes[k].size;
    rest /= axes[k].size;
    operand += index[k] * axes[k].operand_stride;
    windows += index[k] * axes[k].windows_stride;
  }
  for (int64_t element = begin; element < end; ++element) {
    f(operand, windows);
    for (size_t k = 0; k < axes.size(); ++k) {
      operand += axes[k].operand_stride;
      windows += axes[k].windows_stride;
      if (++index[k] < axes[k].size) break;
      operand -= axes[k].size * axes[k].operand_stride;
      windows -= axes[k].size * axes[k].windows_stride;
      index[k] = 0;
    }
  }
}

// The places of the windows of a Gather or a Scatter, for tensors of known sizes: the axes of a window, and the start
// of each window. Index vectors are numbered in a given order of the batch axes; batch axes that are one run are
// merged. Immutable after construction, so thread-safe; only Locate reads indices. Nothing fails or allocates after
// construction.
class WindowPlan {
 public:
  enum class OutOfBounds : uint8_t { kClamp, kSkip };

  // Index vectors whose starts are found at a time.
  static constexpr int64_t kBlock = 512;
  struct Starts {
    int64_t operand[kBlock];  // first element of the window; negative: it does not fit and is skipped
    int64_t windows[kBlock];
    int64_t along[kBlock];  // the start along the axis that Locate was asked for
  };

  // `batch_order`: the batch axes of the indices, the fastest first.
  WindowPlan(const WindowAxes& axes, const Shape& operand, const ConcreteType& indices, const Shape& windows,
             absl::Span<const int64_t> batch_order, OutOfBounds out_of_bounds);

  // Index vectors whose window has elements and may fit; 0 if there is nothing to do.
  int64_t num_windows() const { return layout_.num_windows; }
  int64_t window_elements() const { return layout_.window_elements; }
  // Axes of size other than 1, by their stride in the tensor of windows.
  absl::Span<const WindowAxis> window() const { return layout_.window; }
  // The step between the starts of successive windows in the tensor of windows; 0 if it is not one.
  int64_t windows_step() const { return windows_step_; }

  // Tells whether the start along an axis of the operand comes from an index vector, false if from the place in the
  // batch.
  bool IsIndexed(int64_t operand_axis) const { return layout_.IsIndexed(operand_axis); }
  bool IsBatching(int64_t operand_axis) const;

  // Finds the starts of windows first … first + count - 1, count <= kBlock. `along`: an axis of the operand whose
  // starts are wanted as well, -1 for none.
  void Locate(const void* indices, int64_t first, int64_t count, int64_t along, Starts* starts) const;

  // Tells whether window i starts at indices[i * index_step] * operand_step and at i * windows_step(), for indices from
  // 0 to limit.
  bool is_lookup() const { return is_lookup_; }
  DType index_dtype() const { return index_dtype_; }
  struct Lookup {
    int64_t index_step = 1;
    int64_t limit = 0;
    int64_t operand_step = 0;
  };
  // Needs is_lookup().
  Lookup lookup() const {
    const WindowLayout::Component& component = layout_.components[0];
    return {layout_.batch[0].indices_stride, component.limit, component.operand_stride};
  }

 private:
  template <typename Index>
  void AddComponents(const Index* indices, int64_t step, int64_t count, int64_t along, int64_t first,
                     Starts* starts) const;

  OutOfBounds out_of_bounds_;
  DType index_dtype_;
  WindowLayout layout_;
  int64_t windows_step_ = 0;
  bool is_lookup_ = false;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_INDEXING_WINDOW_PLAN_H_
