#include "backends/cpu/indexing/kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/layout/strided_copy.h"
#include "engine/ops/dynamic_slicing.h"

namespace tensord::cpu {
namespace {

// Finds the byte at which a window of a tensor begins.
class WindowStart {
 public:
  WindowStart(const ConcreteType& whole, const Shape& window, DType index_dtype, const Attributes& attrs)
      : index_dtype_(index_dtype) {
    const Shape strides = ColumnMajorStrides(whole.shape);
    for (int64_t axis : StartAxes(attrs, whole.rank())) {
      const size_t k = static_cast<size_t>(axis);
      entries_.push_back({whole.shape[k] - window[k], strides[k] * SizeOf(whole.dtype)});
    }
  }

  int64_t OffsetBytes(const void* start_indices) const {
    return index_dtype_ == DType::kI32 ? Offset<int32_t>(start_indices) : Offset<int64_t>(start_indices);
  }

 private:
  struct Entry {
    int64_t last = 0;  // the greatest start with which the window fits
    int64_t step_bytes = 0;
  };

  template <typename Index>
  int64_t Offset(const void* start_indices) const {
    int64_t offset = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      Index start;
      std::memcpy(&start, static_cast<const char*>(start_indices) + i * sizeof(Index), sizeof(Index));
      offset += std::clamp<int64_t>(start, 0, entries_[i].last) * entries_[i].step_bytes;
    }
    return offset;
  }

  absl::InlinedVector<Entry, 6> entries_;
  const DType index_dtype_;
};

class DynamicSliceKernel final : public Kernel {
 public:
  DynamicSliceKernel(StridedCopy copy, WindowStart start) : copy_(std::move(copy)), start_(std::move(start)) {}

  void Run(const KernelArgs& args) const override {
    if (copy_.num_tasks() == 0) return;
    RunCopy(copy_, static_cast<const char*>(args.operands[0]) + start_.OffsetBytes(args.operands[1]), args.results[0],
            args.pool);
  }

 private:
  const StridedCopy copy_;
  const WindowStart start_;
};

class DynamicUpdateSliceKernel final : public Kernel {
 public:
  DynamicUpdateSliceKernel(StridedCopy whole, StridedCopy window, WindowStart start)
      : whole_(std::move(whole)), window_(std::move(window)), start_(std::move(start)) {}

  void Run(const KernelArgs& args) const override {
    if (args.results[0] != args.operands[0]) RunCopy(whole_, args.operands[0], args.results[0], args.pool);
    if (window_.num_tasks() == 0) return;
    RunCopy(window_, args.operands[1], static_cast<char*>(args.results[0]) + start_.OffsetBytes(args.operands[2]),
            args.pool);
  }

 private:
  const StridedCopy whole_;
  const StridedCopy window_;
  const WindowStart start_;
};

CopyAxes AxesOf(const Shape& sizes, const Shape& src_strides, const Shape& dst_strides) {
  CopyAxes axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({sizes[i], src_strides[i], dst_strides[i]});
  return axes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeDynamicSliceKernel(const BoundInstruction& instruction) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape& window = instruction.results[0].shape;
  const CopyAxes axes = AxesOf(window, ColumnMajorStrides(operand.shape), ColumnMajorStrides(window));
  return std::make_unique<DynamicSliceKernel>(
      StridedCopy(axes, SizeOf(operand.dtype)),
      WindowStart(operand, window, instruction.operands[1].dtype, *instruction.attrs));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDynamicUpdateSliceKernel(const BoundInstruction& instruction) {
  const ConcreteType &operand = instruction.operands[0], &update = instruction.operands[1];
  const CopyAxes axes = AxesOf(update.shape, ColumnMajorStrides(update.shape), ColumnMajorStrides(operand.shape));
  const int64_t element_bytes = SizeOf(operand.dtype);
  // A window that is the whole leaves nothing of the operand.
  const CopyAxes whole = {{update.shape == operand.shape ? 0 : operand.num_elements(), 1, 1}};
  return std::make_unique<DynamicUpdateSliceKernel>(
      StridedCopy(whole, element_bytes), StridedCopy(axes, element_bytes),
      WindowStart(operand, update.shape, instruction.operands[2].dtype, *instruction.attrs));
}

}  // namespace tensord::cpu
