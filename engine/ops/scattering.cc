#include "engine/ops/scattering.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/index_walk.h"
#include "engine/ops/index_windows.h"
#include "engine/ops/scalar/scalar_math.h"

namespace tensord {
namespace {

absl::Status CheckIndexOrder(const Attributes& attrs, const WindowAxes& axes, int64_t indices_rank) {
  const std::vector<int64_t>& order = attrs.Ints("index_order");
  if (order.empty()) return absl::OkStatus();
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted == axes.IndicesBatchAxes(indices_rank)) return absl::OkStatus();
  return Refuse(Refusal::kAttributeInvalid,
                absl::StrCat("index_order must name each batch axis of scatter_indices once, and is [",
                             absl::StrJoin(order, ","), "]"));
}

// Applies f(element of the operand, element of the updates) in index order.
template <typename T, typename F>
void Combine(const ReferenceCall& call, const F& f) {
  const Literal &indices = *call.operands[1], &updates = *call.operands[2];
  Literal& out = call.results[0];
  const WindowAxes axes = WindowAxes::Of(call.attrs, kScatterNames);
  const int64_t rank = out.type().rank(), indices_rank = indices.type().rank();
  const std::vector<int64_t> window_axes = axes.OperandWindowAxes(rank), batch_dims = axes.BatchDims(indices_rank);
  const std::vector<int64_t> batch_axes = axes.IndicesBatchAxes(indices_rank);
  const Shape strides = ColumnMajorStrides(out.shape()), update_strides = ColumnMajorStrides(updates.shape());
  Shape window, sizes(out.shape().size(), 1);
  for (size_t k = 0; k < window_axes.size(); ++k) {
    window.push_back(updates.shape()[static_cast<size_t>(axes.window_dims[k])]);
    sizes[static_cast<size_t>(window_axes[k])] = window[k];
  }
  // The batch axes from fastest to slowest, each as its place among them.
  std::vector<size_t> order;
  Shape ordered;
  for (int64_t axis : ScatterIndexOrder(call.attrs, indices_rank)) {
    order.push_back(static_cast<size_t>(std::find(batch_axes.begin(), batch_axes.end(), axis) - batch_axes.begin()));
    ordered.push_back(indices.shape()[static_cast<size_t>(axis)]);
  }
  const absl::Span<const T> from = updates.values<T>();
  const absl::Span<T> to = out.mutable_values<T>();
  Shape batch(order.size());
  for (IndexWalk b(ordered); !b.done(); b.Next()) {
    int64_t update_start = 0, start = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      batch[order[k]] = b[k];
      update_start += b[k] * update_strides[static_cast<size_t>(batch_dims[order[k]])];
    }
    const Shape at = WindowStart(axes, indices, batch, rank);
    bool fits = true;
    for (size_t k = 0; k < at.size(); ++k) fits = fits && at[k] >= 0 && at[k] <= out.shape()[k] - sizes[k];
    if (!fits) continue;
    for (size_t k = 0; k < at.size(); ++k) start += at[k] * strides[k];
    for (IndexWalk w(window); !w.done(); w.Next()) {
      int64_t element = start, update = update_start;
      for (size_t k = 0; k < window.size(); ++k) {
        element += w[k] * strides[static_cast<size_t>(window_axes[k])];
        update += w[k] * update_strides[static_cast<size_t>(axes.window_dims[k])];
      }
      T& result = to[static_cast<size_t>(element)];
      result = f(result, from[static_cast<size_t>(update)]);
    }
  }
}

template <typename T>
void CombineWith(ScatterCombiner combiner, const ReferenceCall& call) {
  switch (combiner) {
    case ScatterCombiner::kAdd:
      return Combine<T>(call, [](T a, T b) { return scalar::Apply(scalar::Add{}, a, b); });
    case ScatterCombiner::kSet:
      return Combine<T>(call, [](T, T b) { return b; });
    case ScatterCombiner::kMultiply:
      return Combine<T>(call, [](T a, T b) { return scalar::Apply(scalar::Multiply{}, a, b); });
    case ScatterCombiner::kMinimum:
      return Combine<T>(call, [](T a, T b) { return scalar::Apply(scalar::Minimum{}, a, b); });
    case ScatterCombiner::kMaximum:
      return Combine<T>(call, [](T a, T b) { return scalar::Apply(scalar::Maximum{}, a, b); });
  }
}

}  // namespace

std::vector<int64_t> ScatterIndexOrder(const Attributes& attrs, int64_t indices_rank) {
  const std::vector<int64_t>& order = attrs.Ints("index_order");
  return order.empty() ? WindowAxes::Of(attrs, kScatterNames).IndicesBatchAxes(indices_rank) : order;
}

absl::StatusOr<ResultTypes> InferScatter(InferContext& context) {
  const TensorType &operand = context.operand(0), &indices = context.operand(1), &updates = context.operand(2);
  const WindowAxes axes = WindowAxes::Of(context.attrs(), kScatterNames);
  RETURN_IF_ERROR(CheckSameDType(operand, updates, "operand and updates"));
  RETURN_IF_ERROR(CheckWindowAxes(context, axes, kScatterNames, operand, indices));
  RETURN_IF_ERROR(CheckIndexOrder(context.attrs(), axes, indices.rank()));
  const std::vector<int64_t> batch_axes = axes.IndicesBatchAxes(indices.rank());
  const std::vector<int64_t> batch_dims = axes.BatchDims(indices.rank());
  const std::vector<int64_t> window_axes = axes.OperandWindowAxes(operand.rank());
  const size_t updates_rank = batch_axes.size() + window_axes.size();
  if (updates.shape.size() != updates_rank) {
    return Refuse(
        Refusal::kRankMismatch,
        absl::StrCat("updates must have rank ", updates_rank, ", for ", batch_axes.size(), " batch axes of ",
                     "scatter_indices and ", window_axes.size(), " window axes, and are ", ToString(updates)));
  }
  for (size_t i = 0; i < batch_axes.size(); ++i) {
    RETURN_IF_ERROR(context.RequireEqual(updates.shape[static_cast<size_t>(batch_dims[i])],
                                         indices.shape[static_cast<size_t>(batch_axes[i])],
                                         absl::StrCat("sizes of the batch axes ", batch_dims[i], " of updates and ",
                                                      batch_axes[i], " of scatter_indices differ")));
  }
  for (size_t i = 0; i < window_axes.size(); ++i) {
    RETURN_IF_ERROR(context.RequireAtMost(
        updates.shape[static_cast<size_t>(axes.window_dims[i])], operand.shape[static_cast<size_t>(window_axes[i])],
        absl::StrCat("the window axis ", axes.window_dims[i], " of updates is larger than axis ", window_axes[i],
                     " of the operand")));
  }
  return ResultTypes{operand};
}

absl::Status ReferenceScatter(const ReferenceCall& call) {
  const Literal& operand = *call.operands[0];
  if (!operand.bytes().empty()) {
    std::memcpy(call.results[0].mutable_data(), operand.bytes().data(), operand.bytes().size());
  }
  const auto combiner = static_cast<ScatterCombiner>(call.attrs.Int("combiner"));
  VisitDType(operand.dtype(), [&]<typename T>(TypeTag<T>) { CombineWith<T>(combiner, call); });
  return absl::OkStatus();
}

PermutedCall PermuteScatter(const PermuteContext& context) {
  const AxisOrder &operand_order = context.orders[0], &indices_order = context.orders[1];
  const int64_t indices_rank = static_cast<int64_t>(indices_order.size());
  const WindowAxes axes = WindowAxes::Of(context.attrs, kScatterNames);
  // Window axes stay in their order of the stored updates, so that nothing moves unless the order has to change.
  std::vector<int64_t> window_dims = MapAxes(axes.window_dims, context.orders[2]);
  std::sort(window_dims.begin(), window_dims.end());
  PermutedWindows permuted = PermuteWindows(axes, operand_order, indices_order, std::move(window_dims));
  PermutedCall call{.attrs = context.attrs, .result_order = operand_order};
  call.operand_orders = {operand_order, indices_order, std::move(permuted.windows_order)};
  permuted.axes.SetOn(&call.attrs, kScatterNames);
  std::vector<int64_t> index_order = MapAxes(ScatterIndexOrder(context.attrs, indices_rank), indices_order);
  if (std::is_sorted(index_order.begin(), index_order.end())) index_order.clear();
  call.attrs.Set("index_order", std::move(index_order));
  return call;
}

}  // namespace tensord
