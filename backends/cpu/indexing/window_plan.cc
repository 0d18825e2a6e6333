#include "backends/cpu/indexing/window_plan.h"

#include <algorithm>

namespace tensord::cpu {
namespace {

// Marks a start that does not fit, whatever is added to it later.
constexpr int64_t kMisfit = std::numeric_limits<int64_t>::min() / 2;

size_t Size(int64_t value) { return static_cast<size_t>(value); }

}  // namespace

WindowPlan::WindowPlan(const WindowAxes& axes, const Shape& operand, const ConcreteType& indices, const Shape& windows,
                       absl::Span<const int64_t> batch_order, OutOfBounds out_of_bounds)
    : out_of_bounds_(out_of_bounds), index_dtype_(indices.dtype) {
  const int64_t rank = static_cast<int64_t>(operand.size()), indices_rank = indices.rank();
  const Shape operand_strides = ColumnMajorStrides(operand), windows_strides = ColumnMajorStrides(windows);
  const Shape indices_strides = ColumnMajorStrides(indices.shape);
  Shape sizes(operand.size(), 1);
  const std::vector<int64_t> window_axes = axes.OperandWindowAxes(rank);
  for (size_t i = 0; i < window_axes.size(); ++i) {
    const size_t axis = Size(window_axes[i]), dim = Size(axes.window_dims[i]);
    sizes[axis] = windows[dim];
    window_elements_ *= windows[dim];
    if (windows[dim] != 1) {
      window_.push_back({windows[dim], operand_strides[axis], windows_strides[dim], window_axes[i]});
    }
  }
  AddBatchAxes(axes, indices, windows, operand_strides, batch_order);
  for (size_t k = 0; k < axes.index_map.size(); ++k) {
    const size_t axis = Size(axes.index_map[k]);
    const int64_t step = axes.index_vector_dim < indices_rank ? indices_strides[Size(axes.index_vector_dim)] : 0;
    components_.push_back({.indices_offset = static_cast<int64_t>(k) * step,
                           .operand_stride = operand_strides[axis],
                           .limit = operand[axis] - sizes[axis],
                           .operand_axis = axes.index_map[k]});
  }

  bool any = window_elements_ > 0;
  for (size_t axis = 0; axis < operand.size(); ++axis) any = any && sizes[axis] <= operand[axis];
  num_windows_ = 1;
  for (const BatchAxis& axis : batch_) num_windows_ *= axis.size;
  if (!any) num_windows_ = 0;
  if (batch_.size() == 1) windows_step_ = batch_[0].windows_stride;
  is_lookup_ = batch_.size() == 1 && components_.size() == 1 && batch_[0].operand_axis < 0;
}

void WindowPlan::AddBatchAxes(const WindowAxes& axes, const ConcreteType& indices, const Shape& windows,
                              const Shape& operand_strides, absl::Span<const int64_t> batch_order) {
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
    BatchAxis* const last = batch_.empty() ? nullptr : &batch_.back();
    if (last != nullptr && last->operand_axis < 0 && batch.operand_axis < 0 &&
        batch.indices_stride == last->indices_stride * last->size &&
        batch.windows_stride == last->windows_stride * last->size) {
      last->size *= batch.size;
    } else {
      batch_.push_back(batch);
    }
  }
  if (batch_.empty()) batch_.push_back({.size = 1, .indices_stride = 1, .windows_stride = 1});
}

MergedWindow MergeWindowAxes(absl::Span<const WindowAxis> axes, int64_t apart) {
  MergedWindow merged;
  for (const WindowAxis& axis : axes) {
    WindowAxis* const last = merged.empty() ? nullptr : &merged.back();
    if (last != nullptr && axis.operand_axis != apart && last->operand_axis != apart &&
        axis.operand_stride == last->operand_stride * last->size &&
        axis.windows_stride == last->windows_stride * last->size) {
      last->size *= axis.size;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

bool WindowPlan::IsIndexed(int64_t operand_axis) const {
  return std::any_of(components_.begin(), components_.end(),
                     [=](const Component& c) { return c.operand_axis == operand_axis; });
}

bool WindowPlan::IsBatching(int64_t operand_axis) const {
  return std::any_of(batch_.begin(), batch_.end(), [=](const BatchAxis& b) { return b.operand_axis == operand_axis; });
}

// Adds the index vectors' values to the starts of a run of windows along the fastest batch axis.
template <typename Index>
void WindowPlan::AddComponents(const Index* indices, int64_t step, int64_t count, int64_t along, int64_t first,
                               Starts* starts) const {
  int64_t* const operand = starts->operand + first;
  for (const Component& component : components_) {
    const Index* const from = indices + component.indices_offset;
    const int64_t limit = component.limit, stride = component.operand_stride;
    if (out_of_bounds_ == OutOfBounds::kClamp) {
      for (int64_t i = 0; i < count; ++i) {
        operand[i] += std::clamp<int64_t>(from[i * step], 0, limit) * stride;
      }
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t start = from[i * step];
      const bool fits = static_cast<uint64_t>(start) <= static_cast<uint64_t>(limit);
      operand[i] = fits ? operand[i] + start * stride : kMisfit;
    }
    if (component.operand_axis != along) continue;
    for (int64_t i = 0; i < count; ++i) starts->along[first + i] = from[i * step];
  }
}

void WindowPlan::Locate(const void* indices, int64_t first, int64_t count, int64_t along, Starts* starts) const {
  int64_t index[kMaxWindowAxes];
  int64_t rest = first;
  for (size_t k = 0; k < batch_.size(); ++k) {
    index[k] = rest % batch_[k].size;
    rest /= batch_[k].size;
  }
  const BatchAxis& inner = batch_[0];
  for (int64_t done = 0; done < count;) {
    int64_t indices_at = 0, operand_at = 0, windows_at = 0, start_along = 0;
    for (size_t k = 0; k < batch_.size(); ++k) {
      indices_at += index[k] * batch_[k].indices_stride;
      operand_at += index[k] * batch_[k].operand_stride;
      windows_at += index[k] * batch_[k].windows_stride;
      if (along >= 0 && batch_[k].operand_axis == along) start_along = index[k];
    }
    const int64_t run = std::min(count - done, inner.size - index[0]);
    const int64_t along_step = along >= 0 && inner.operand_axis == along ? 1 : 0;
    for (int64_t i = 0; i < run; ++i) {
      starts->operand[done + i] = operand_at + i * inner.operand_stride;
      starts->windows[done + i] = windows_at + i * inner.windows_stride;
    }
    if (along >= 0) {
      for (int64_t i = 0; i < run; ++i) starts->along[done + i] = start_along + i * along_step;
    }
    if (index_dtype_ == DType::kI32) {
      AddComponents(static_cast<const int32_t*>(indices) + indices_at, inner.indices_stride, run, along, done, starts);
    } else {
      AddComponents(static_cast<const int64_t*>(indices) + indices_at, inner.indices_stride, run, along, done, starts);
    }
    done += run;
    index[0] += run;
    for (size_t k = 0; k + 1 < batch_.size() && index[k] == batch_[k].size; ++k) {
      index[k] = 0;
      ++index[k + 1];
    }
  }
}

}  // namespace tensord::cpu
