#include "backends/cpu/contraction/operands/padded_copy.h"

namespace tensord::cpu {
namespace {

alignas(16) constexpr char kZero[16] = {};  // one element of any dtype

}  // namespace

PaddedCopy::PaddedCopy(const ConcreteType& type, const Shape& low, const Shape& padded, size_t first_axis)
    : strides_(padded.size(), 1) {
  const int64_t element_bytes = SizeOf(type.dtype);
  const size_t rank = padded.size();
  int64_t elements = rank == 0 ? 1 : padded[first_axis];
  for (size_t axis = 0; axis < rank; ++axis) {
    if (axis == first_axis) continue;
    strides_[axis] = elements;
    elements *= padded[axis];
  }
  bytes_ = elements * element_bytes;
  // A slab of zeros at each end of each axis; they meet in the corners.
  const auto add_zeros = [&](size_t along, int64_t first, int64_t count) {
    if (count == 0) return;
    CopyAxes axes;
    for (size_t axis = 0; axis < rank; ++axis) {
      axes.push_back({axis == along ? count : padded[axis], 0, strides_[axis]});
    }
    zeros_.push_back({StridedCopy(axes, element_bytes, bytes_), first * strides_[along] * element_bytes});
  };
  const Shape tensor_strides = ColumnMajorStrides(type.shape);
  CopyAxes axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    axes.push_back({type.shape[axis], tensor_strides[axis], strides_[axis]});
    elements_.place_bytes += low[axis] * strides_[axis] * element_bytes;
    add_zeros(axis, 0, low[axis]);
    add_zeros(axis, low[axis] + type.shape[axis], padded[axis] - low[axis] - type.shape[axis]);
  }
  elements_.copy = StridedCopy(axes, element_bytes, bytes_);
}

void PaddedCopy::Run(const char* tensor, char* copy, ThreadPool* pool) const {
  for (const Step& zeros : zeros_) RunCopy(zeros.copy, kZero, copy + zeros.place_bytes, pool);
  RunCopy(elements_.copy, tensor, copy + elements_.place_bytes, pool);
}

}  // namespace tensord::cpu
