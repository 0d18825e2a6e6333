#ifndef TENSORD_BACKENDS_CUDA_KERNELS_WINDOW_TEXT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_WINDOW_TEXT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/codegen/lines.h"
#include "engine/exec/backend/window_layout.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// The places of a window's elements, as text, for kernels of gather and scatter. The indices are the pointer `indices`.
class WindowText {
 public:
  WindowText(WindowLayout layout, DType index_dtype) : layout_(std::move(layout)), index_dtype_(index_dtype) {}
  const WindowLayout& layout() const { return layout_; }

  // A place in the tensor of windows, as coordinates: of the batch axes in their order, and of the window's axes.
  struct Place {
    std::vector<std::string> batch;
    std::vector<std::string> window;
  };
  // Declares the coordinates of an element of the tensor of windows, from its linear index in memory.
  Place WriteElement(CudaLines* lines, const std::string& variable) const;
  // Declares the coordinates of a window, from its number in the batch's order.
  Place WriteWindow(CudaLines* lines, const std::string& variable) const;
  // Declares the coordinates of an element of a window, from its linear index in it.
  Place WriteInner(CudaLines* lines, const std::string& variable) const;

  // Declares "const i64 start": the first element of the place's window in the operand, by its index vector. One that
  // does not fit is clamped, or is -1 if `skips`.
  void WriteStart(CudaLines* lines, const Place& place, bool skips) const;
  // Return sums of the place's coordinates: in the operand, of the window's axes; in the tensor of windows; the
  // window's number in the batch's order.
  std::string InnerOffset(const Place& place) const;
  std::string WindowsOffset(const Place& place) const;
  std::string Number(const Place& place) const;

 private:
  std::vector<int64_t> BatchSizes() const;
  std::vector<int64_t> WindowSizes() const;

  const WindowLayout layout_;
  const DType index_dtype_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_WINDOW_TEXT_H_
