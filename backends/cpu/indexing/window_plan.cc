#include "backends/cpu/indexing/window_plan.h"

#include <algorithm>

namespace tensord::cpu {
namespace {

// Marks a start that does not fit, whatever is added to it later.
constexpr int64_t kMisfit = std::numeric_limits<int64_t>::min() / 2;

}  // namespace

WindowPlan::WindowPlan(const WindowAxes& axes, const Shape& operand, const ConcreteType& indices, const Shape& windows,
                       absl::Span<const int64_t> batch_order, OutOfBounds out_of_bounds)
    : out_of_bounds_(out_of_bounds),
      index_dtype_(indices.dtype),
      layout_(WindowLayout::Of(axes, operand, indices, windows, batch_order)) {
  const auto& batch = layout_.batch;
  if (batch.size() == 1) windows_step_ = batch[0].windows_stride;
  is_lookup_ = batch.size() == 1 && layout_.components.size() == 1 && batch[0].operand_axis < 0;
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

bool WindowPlan::IsBatching(int64_t operand_axis) const {
  return std::any_of(layout_.batch.begin(), layout_.batch.end(),
                     [=](const WindowLayout::BatchAxis& b) { return b.operand_axis == operand_axis; });
}

// Adds the index vectors' values to the starts of a run of windows along the fastest batch axis.
template <typename Index>
void WindowPlan::AddComponents(const Index* indices, int64_t step, int64_t count, int64_t along, int64_t first,
                               Starts* starts) const {
  int64_t* const operand = starts->operand + first;
  for (const WindowLayout::Component& component : layout_.components) {
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
  for (size_t k = 0; k < layout_.batch.size(); ++k) {
    index[k] = rest % layout_.batch[k].size;
    rest /= layout_.batch[k].size;
  }
  const WindowLayout::BatchAxis& inner = layout_.batch[0];
  for (int64_t done = 0; done < count;) {
    int64_t indices_at = 0, operand_at = 0, windows_at = 0, start_along = 0;
    for (size_t k = 0; k < layout_.batch.size(); ++k) {
      indices_at += index[k] * layout_.batch[k].indices_stride;
      operand_at += index[k] * layout_.batch[k].operand_stride;
      windows_at += index[k] * layout_.batch[k].windows_stride;
      if (along >= 0 && layout_.batch[k].operand_axis == along) start_along = index[k];
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
    for (size_t k = 0; k + 1 < layout_.batch.size() && index[k] == layout_.batch[k].size; ++k) {
      index[k] = 0;
      ++index[k + 1];
    }
  }
}

}  // namespace tensord::cpu
