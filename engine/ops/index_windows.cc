#include "engine/ops/index_windows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/contraction.h"

namespace tensord {
namespace {

bool Contains(absl::Span<const int64_t> axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

absl::Status CheckSorted(absl::Span<const int64_t> axes, absl::string_view what) {
  if (std::is_sorted(axes.begin(), axes.end())) return absl::OkStatus();
  return Refuse(Refusal::kAttributeInvalid,
                absl::StrCat(what, " must name axes in ascending order, and is [", absl::StrJoin(axes, ","), "]"));
}

absl::Status CheckSortedAxes(absl::Span<const int64_t> axes, int64_t rank, absl::string_view what) {
  RETURN_IF_ERROR(CheckAxes(axes, rank, what));
  return CheckSorted(axes, what);
}

absl::Status CheckDisjoint(absl::Span<const int64_t> a, absl::Span<const int64_t> b, absl::string_view a_name,
                           absl::string_view b_name) {
  for (int64_t axis : a) {
    if (!Contains(b, axis)) continue;
    return Refuse(Refusal::kAxisDuplicate,
                  absl::StrCat("axis ", axis, " of the operand is named by both ", a_name, " and ", b_name));
  }
  return absl::OkStatus();
}

int64_t IndexAt(const Literal& indices, int64_t at) {
  return indices.dtype() == DType::kI32 ? indices.values<int32_t>()[static_cast<size_t>(at)]
                                        : indices.values<int64_t>()[static_cast<size_t>(at)];
}

// Returns the place of each of `axes` among the sorted axes.
std::vector<size_t> Ranks(absl::Span<const int64_t> axes) {
  std::vector<size_t> ranks;
  for (int64_t axis : axes) {
    const auto before = std::count_if(axes.begin(), axes.end(), [axis](int64_t a) { return a < axis; });
    ranks.push_back(static_cast<size_t>(before));
  }
  return ranks;
}

}  // namespace

WindowAxes WindowAxes::Of(const Attributes& attrs, const WindowNames& names) {
  return {.window_dims = attrs.Ints(names.window_dims),
          .dropped_dims = attrs.Ints(names.dropped_dims),
          .operand_batching_dims = attrs.Ints(names.operand_batching_dims),
          .indices_batching_dims = attrs.Ints(names.indices_batching_dims),
          .index_map = attrs.Ints(names.index_map),
          .index_vector_dim = attrs.Int("index_vector_dim")};
}

void WindowAxes::SetOn(Attributes* attrs, const WindowNames& names) const {
  attrs->Set(names.window_dims, window_dims)
      .Set(names.dropped_dims, dropped_dims)
      .Set(names.operand_batching_dims, operand_batching_dims)
      .Set(names.indices_batching_dims, indices_batching_dims)
      .Set(names.index_map, index_map)
      .Set("index_vector_dim", index_vector_dim);
}

std::vector<int64_t> WindowAxes::OperandWindowAxes(int64_t operand_rank) const {
  return FreeAxes(operand_rank, dropped_dims, operand_batching_dims);
}

std::vector<int64_t> WindowAxes::IndicesBatchAxes(int64_t indices_rank) const {
  return FreeAxes(indices_rank, {index_vector_dim}, {});
}

std::vector<int64_t> WindowAxes::BatchDims(int64_t indices_rank) const {
  const int64_t batch_rank = indices_rank - (index_vector_dim < indices_rank ? 1 : 0);
  return FreeAxes(static_cast<int64_t>(window_dims.size()) + batch_rank, window_dims, {});
}

absl::Status CheckWindowAxes(InferContext& context, const WindowAxes& axes, const WindowNames& names,
                             const TensorType& operand, const TensorType& indices) {
  RETURN_IF_ERROR(CheckDType(indices.dtype, kIntegers, names.indices));
  const int64_t vector_dim = axes.index_vector_dim;
  if (vector_dim < 0 || vector_dim > indices.rank()) {
    return Refuse(Refusal::kAxisOutOfRange, absl::StrCat("index_vector_dim must be an axis of ", names.indices,
                                                         " or its rank ", indices.rank(), ", and is ", vector_dim));
  }
  RETURN_IF_ERROR(CheckSortedAxes(axes.dropped_dims, operand.rank(), names.dropped_dims));
  RETURN_IF_ERROR(CheckSortedAxes(axes.operand_batching_dims, operand.rank(), names.operand_batching_dims));
  RETURN_IF_ERROR(
      CheckDisjoint(axes.dropped_dims, axes.operand_batching_dims, names.dropped_dims, names.operand_batching_dims));
  RETURN_IF_ERROR(CheckAxes(axes.indices_batching_dims, indices.rank(), names.indices_batching_dims));
  if (Contains(axes.indices_batching_dims, vector_dim)) {
    return Refuse(Refusal::kAxisDuplicate,
                  absl::StrCat(names.indices_batching_dims, " names index_vector_dim, axis ", vector_dim));
  }
  if (axes.operand_batching_dims.size() != axes.indices_batching_dims.size()) {
    return Refuse(Refusal::kAttributeInvalid,
                  absl::StrCat(names.operand_batching_dims, " and ", names.indices_batching_dims,
                               " must name as many axes, and name ", axes.operand_batching_dims.size(), " and ",
                               axes.indices_batching_dims.size()));
  }
  for (size_t i = 0; i < axes.operand_batching_dims.size(); ++i) {
    const int64_t a = axes.operand_batching_dims[i], b = axes.indices_batching_dims[i];
    RETURN_IF_ERROR(context.RequireEqual(
        operand.shape[static_cast<size_t>(a)], indices.shape[static_cast<size_t>(b)],
        absl::StrCat("sizes of the batching axes ", a, " of the operand and ", b, " of ", names.indices, " differ")));
  }
  RETURN_IF_ERROR(CheckAxes(axes.index_map, operand.rank(), names.index_map));
  RETURN_IF_ERROR(
      CheckDisjoint(axes.index_map, axes.operand_batching_dims, names.index_map, names.operand_batching_dims));
  RETURN_IF_ERROR(context.RequireEqual(
      static_cast<int64_t>(axes.index_map.size()),
      vector_dim < indices.rank() ? indices.shape[static_cast<size_t>(vector_dim)] : Dim(1),
      absl::StrCat(names.index_map, " must name an axis for each component of an index vector; their numbers differ")));
  const int64_t window_rank = operand.rank() - static_cast<int64_t>(axes.dropped_dims.size()) -
                              static_cast<int64_t>(axes.operand_batching_dims.size());
  RETURN_IF_ERROR(CheckLength(axes.window_dims.size(), window_rank, names.window_dims));
  const int64_t batch_rank = indices.rank() - (vector_dim < indices.rank() ? 1 : 0);
  return CheckSortedAxes(axes.window_dims, window_rank + batch_rank, names.window_dims);
}

Shape WindowStart(const WindowAxes& axes, const Literal& indices, absl::Span<const int64_t> batch,
                  int64_t operand_rank) {
  const int64_t indices_rank = static_cast<int64_t>(indices.shape().size());
  const Shape strides = ColumnMajorStrides(indices.shape());
  const std::vector<int64_t> batch_axes = axes.IndicesBatchAxes(indices_rank);
  Shape start(static_cast<size_t>(operand_rank), 0);
  int64_t at = 0;
  for (size_t i = 0; i < batch_axes.size(); ++i) {
    at += batch[i] * strides[static_cast<size_t>(batch_axes[i])];
    for (size_t n = 0; n < axes.indices_batching_dims.size(); ++n) {
      if (axes.indices_batching_dims[n] == batch_axes[i]) {
        start[static_cast<size_t>(axes.operand_batching_dims[n])] = batch[i];
      }
    }
  }
  for (size_t k = 0; k < axes.index_map.size(); ++k) {
    const int64_t step = k == 0 ? 0 : strides[static_cast<size_t>(axes.index_vector_dim)];
    start[static_cast<size_t>(axes.index_map[k])] = IndexAt(indices, at + static_cast<int64_t>(k) * step);
  }
  return start;
}

PermutedWindows PermuteWindows(const WindowAxes& axes, const AxisOrder& operand_order, const AxisOrder& indices_order,
                               std::vector<int64_t> window_dims) {
  const int64_t operand_rank = static_cast<int64_t>(operand_order.size());
  const int64_t indices_rank = static_cast<int64_t>(indices_order.size());
  PermutedWindows permuted{.axes = axes};
  WindowAxes& stored = permuted.axes;
  stored.window_dims = std::move(window_dims);
  stored.dropped_dims = MapAxes(axes.dropped_dims, operand_order);
  std::sort(stored.dropped_dims.begin(), stored.dropped_dims.end());
  std::vector<std::pair<int64_t, int64_t>> batching;
  for (size_t i = 0; i < axes.operand_batching_dims.size(); ++i) {
    batching.emplace_back(operand_order[static_cast<size_t>(axes.operand_batching_dims[i])],
                          indices_order[static_cast<size_t>(axes.indices_batching_dims[i])]);
  }
  std::sort(batching.begin(), batching.end());
  for (size_t i = 0; i < batching.size(); ++i) {
    stored.operand_batching_dims[i] = batching[i].first;
    stored.indices_batching_dims[i] = batching[i].second;
  }
  stored.index_map = MapAxes(axes.index_map, operand_order);
  if (axes.index_vector_dim < indices_rank) {
    stored.index_vector_dim = indices_order[static_cast<size_t>(axes.index_vector_dim)];
  }

  // Both kinds of axes of the windows tensor follow the stored axes, so these say where each comes to stand.
  const std::vector<int64_t> batch_dims = axes.BatchDims(indices_rank),
                             stored_batch_dims = stored.BatchDims(indices_rank);
  permuted.windows_order.resize(axes.window_dims.size() + batch_dims.size());
  const auto place = [&permuted](const std::vector<int64_t>& dims, const std::vector<int64_t>& followed,
                                 const std::vector<int64_t>& stored_dims) {
    const std::vector<size_t> ranks = Ranks(followed);
    for (size_t i = 0; i < dims.size(); ++i) {
      permuted.windows_order[static_cast<size_t>(dims[i])] = stored_dims[ranks[i]];
    }
  };
  place(axes.window_dims, MapAxes(axes.OperandWindowAxes(operand_rank), operand_order), stored.window_dims);
  place(batch_dims, MapAxes(axes.IndicesBatchAxes(indices_rank), indices_order), stored_batch_dims);
  return permuted;
}

}  // namespace tensord
