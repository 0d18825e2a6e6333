#include <algorithm>

#include "engine/ops/index_windows.h"
#include "tests/testlib/property/growth_rules.h"

namespace tensord::property {
namespace {

// Axes of windows of x, and the types of the indices and of the tensor of windows that go with them.
struct AnyWindows {
  WindowAxes axes;
  SymbolicShape indices, windows;
  std::vector<int64_t> window;  // size along each axis of x; 1 along those without a window axis

  AnyWindows(GrowingGraph& graph, const TensorType& x) : window(x.shape.size(), 1) {
    SymbolicShape batch;
    for (int64_t i = graph.Below(3); i > 0; --i)
      batch.push_back(Dim(graph.OneIn(4) ? graph.Size() : DimExpr(graph.Between(graph.OneIn(8) ? 0 : 1, 4))));
    Ints batch_axes_of_batching;
    const Ints roles = graph.Permutation(x.rank());
    for (int64_t axis : roles) {
      const Dim& dim = x.shape[static_cast<size_t>(axis)];
      const int64_t least = graph.LeastSize(dim).value_or(0);
      if (batch.size() < 3 && dim.extent == Extent::kExact && graph.OneIn(4)) {
        batch_axes_of_batching.push_back(static_cast<int64_t>(batch.size()));
        axes.operand_batching_dims.push_back(axis);
        batch.push_back(dim);
        continue;
      }
      if (least > 0 && graph.OneIn(2)) {
        axes.dropped_dims.push_back(axis);
      } else {
        window[static_cast<size_t>(axis)] = graph.Between(least > 0 && !graph.OneIn(8) ? 1 : 0, least);
      }
      if (!graph.OneIn(3)) axes.index_map.push_back(axis);
    }
    const int64_t batch_rank = static_cast<int64_t>(batch.size());
    const bool has_vector_axis = axes.index_map.size() != 1 || graph.OneIn(2);
    axes.index_vector_dim = has_vector_axis ? graph.Below(batch_rank + 1) : batch_rank;
    indices = batch;
    if (has_vector_axis) {
      indices.insert(indices.begin() + axes.index_vector_dim, Dim(static_cast<int64_t>(axes.index_map.size())));
    }
    SortBatching(batch_axes_of_batching, has_vector_axis);
    std::sort(axes.dropped_dims.begin(), axes.dropped_dims.end());
    const std::vector<int64_t> window_axes = axes.OperandWindowAxes(x.rank());
    axes.window_dims = graph.Permutation(batch_rank + static_cast<int64_t>(window_axes.size()));
    axes.window_dims.resize(window_axes.size());
    std::sort(axes.window_dims.begin(), axes.window_dims.end());
    windows.resize(window_axes.size() + batch.size());
    for (size_t k = 0; k < window_axes.size(); ++k) {
      windows[static_cast<size_t>(axes.window_dims[k])] = Dim(window[static_cast<size_t>(window_axes[k])]);
    }
    const std::vector<int64_t> batch_dims = axes.BatchDims(static_cast<int64_t>(indices.size()));
    for (size_t k = 0; k < batch.size(); ++k) windows[static_cast<size_t>(batch_dims[k])] = batch[k];
  }

 private:
  void SortBatching(const Ints& batch_axes, bool has_vector_axis) {
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (size_t i = 0; i < batch_axes.size(); ++i) {
      const bool is_behind = has_vector_axis && batch_axes[i] >= axes.index_vector_dim;
      pairs.emplace_back(axes.operand_batching_dims[i], batch_axes[i] + (is_behind ? 1 : 0));
    }
    std::sort(pairs.begin(), pairs.end());
    axes.operand_batching_dims.clear();
    for (const auto& [operand_axis, indices_axis] : pairs) {
      axes.operand_batching_dims.push_back(operand_axis);
      axes.indices_batching_dims.push_back(indices_axis);
    }
  }
};

}  // namespace

void GrowGather(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  const AnyWindows any(graph, graph.Type(x));
  const auto indices = graph.WithShape(graph.AnyOf(kIntegers), any.indices, /*exact=*/true);
  if (!indices.has_value()) return;
  Attributes attrs = AttrsOf(op);
  any.axes.SetOn(&attrs, kGatherNames);
  if (op == CoreOp::kGather) {
    graph.Append(op, attrs.Set("slice_sizes", any.window), {x, *indices});
    return;
  }
  // Some sizes are those of another value.
  std::vector<DimExpr> sizes(any.window.begin(), any.window.end());
  std::vector<ValueId> operands = {x, *indices};
  const ValueId source = graph.Any();
  for (int64_t axis : any.axes.OperandWindowAxes(graph.rank(x))) {
    if (graph.rank(source) > 0 && graph.OneIn(2)) {
      sizes[static_cast<size_t>(axis)] = DimExpr::OperandAxis(2, graph.Below(graph.rank(source)));
      operands.resize(3, source);
    }
  }
  graph.Append(op, attrs.Set("slice_sizes", sizes), operands);
}

void GrowScatter(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/true);
  const AnyWindows any(graph, graph.Type(x));
  const auto indices = graph.WithShape(graph.AnyOf(kIntegers), any.indices, /*exact=*/true);
  const auto updates = graph.WithShape(dtype, any.windows, /*exact=*/true);
  if (!indices.has_value() || !updates.has_value()) return;
  Attributes attrs = AttrsOf(op);
  any.axes.SetOn(&attrs, kScatterNames);
  graph.Append(op, attrs.Set("combiner", graph.Below(5)), {x, *indices, *updates});
}

}  // namespace tensord::property
