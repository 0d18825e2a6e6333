#include "engine/exec/backend/window_layout.h"

#include <algorithm>

namespace tensord {
namespace {

size_t Size(int64_t value) { return static_cast<size_t>(value); }

// Adds the batch axes, merged where they are one run.
void AddBatchAxes(const WindowAxes& axes, const ConcreteType& indices, const Shape& windows,
                  const Shape& operand_strides, absl::Span<const int64_t> batch_order, WindowLayout* layout) {
  using BatchAxis = WindowLayout::BatchAxis;
  auto& all = layout->batch;
  const Shape indices_strides = ColumnMajorStrides(indices.shape), windows_strides = ColumnMajorStrides(windows);
  const std::vector<int64_t> batch_axes = axes.IndicesBatchAxes(indices.rank());
  const std::vector<int64_t> batch_dims = axes.BatchDims(indices.rank());
  for (int64_t axis : batch_order) {
    const size_t place = Size(std::find(batch_axes.begin(), batch_axes.end(), axis) - batch_axes.begin());
    BatchAxis batch{.size = indices.shape[Size(axis)],
                    .indices_stride = indices_strides[Size(axis)],
                    .windows_stride = windows_strides[Size(batch_dims[place])]};
    if (batch.size == 1) continue;
    for (size_t n = 0; n < axes.indices_batching_dims.size(); ++n) {
      if (axes.indices_batching_dims[n] != axis) continue;
      batch.operand_axis = axes.operand_batching_dims[n];
      batch.operand_stride = operand_strides[Size(batch.operand_axis)];
    }
    BatchAxis* const last = all.empty() ? nullptr : &all.back();
    if (last != nullptr && last->operand_axis < 0 && batch.operand_axis < 0 &&
        batch.indices_stride == last->indices_stride * last->size &&
        batch.windows_stride == last->windows_stride * last->size) {
      last->size *= batch.size;
    } else {
      all.push_back(batch);
    }
  }
  if (all.empty()) all.push_back({.size = 1, .indices_stride = 1, .windows_stride = 1});
}

}  // namespace

WindowLayout WindowLayout::Of(const WindowAxes& axes, const Shape& operand, const ConcreteType& indices,
                              const Shape& windows, absl::Span<const int64_t> batch_order) {
  WindowLayout layout;
  const int64_t rank = static_cast<int64_t>(operand.size()), indices_rank = indices.rank();
  const Shape operand_strides = ColumnMajorStrides(operand), windows_strides = ColumnMajorStrides(windows);
  const Shape indices_strides = ColumnMajorStrides(indices.shape);
  Shape sizes(operand.size(), 1);
  const std::vector<int64_t> window_axes = axes.OperandWindowAxes(rank);
  for (size_t i = 0; i < window_axes.size(); ++i) {
    const size_t axis = Size(window_axes[i]), dim = Size(axes.window_dims[i]);
    sizes[axis] = windows[dim];
    layout.window_elements *= windows[dim];
    if (windows[dim] != 1) {
      layout.window.push_back({windows[dim], operand_strides[axis], windows_strides[dim], window_axes[i]});
    }
  }
  AddBatchAxes(axes, indices, windows, operand_strides, batch_order, &layout);
  for (size_t k = 0; k < axes.index_map.size(); ++k) {
    const size_t axis = Size(axes.index_map[k]);
    const int64_t step = axes.index_vector_dim < indices_rank ? indices_strides[Size(axes.index_vector_dim)] : 0;
    layout.components.push_back({.indices_offset = static_cast<int64_t>(k) * step,
                                 .operand_stride = operand_strides[axis],
                                 .limit = operand[axis] - sizes[axis],
                                 .operand_axis = axes.index_map[k]});
  }

  bool any = layout.window_elements > 0;
  for (size_t axis = 0; axis < operand.size(); ++axis) any = any && sizes[axis] <= operand[axis];
  layout.num_windows = 1;
  for (const BatchAxis& axis : layout.batch) layout.num_windows *= axis.size;
  if (!any) layout.num_windows = 0;
  return layout;
}

bool WindowLayout::IsIndexed(int64_t operand_axis) const {
  return std::any_of(components.begin(), components.end(),
                     [=](const Component& c) { return c.operand_axis == operand_axis; });
}

}  // namespace tensord
