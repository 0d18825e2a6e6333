#include "tests/testlib/property/growth_rules.h"

namespace tensord::property {

void GrowSlice(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  Ints start, limit, stride;
  for (const Dim& dim : graph.Type(x).shape) {
    const int64_t size = graph.LeastSize(dim);
    limit.push_back(graph.OneIn(4) ? size : graph.Between(0, size));
    start.push_back(graph.OneIn(3) ? 0 : graph.Between(0, limit.back()));
    stride.push_back(graph.OneIn(40) ? std::numeric_limits<int64_t>::max() : graph.Between(1, 3));
  }
  if (graph.OneIn(3)) stride.clear();
  if (!limit.empty() && graph.OneIn(8)) {  // to nothing
    const size_t axis = static_cast<size_t>(graph.Below(static_cast<int64_t>(limit.size())));
    limit[axis] = start[axis];
  }
  graph.Append(op, AttrsOf(op).Set("start_indices", start).Set("limit_indices", limit).Set("strides", stride), {x});
}

void GrowPad(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  const auto value = graph.WithShape(dtype, {}, /*exact=*/false);
  if (!value.has_value()) return;
  Ints low, high, interior;
  for (int64_t i = 0; i < graph.rank(x); ++i) {
    low.push_back(graph.OneIn(3) ? -1 : graph.Below(3));
    high.push_back(graph.OneIn(3) ? -1 : graph.Below(3));
    interior.push_back(graph.OneIn(2) ? 0 : graph.Below(3));
  }
  if (graph.OneIn(3)) interior.clear();
  graph.Append(
      op, AttrsOf(op).Set("edge_padding_low", low).Set("edge_padding_high", high).Set("interior_padding", interior),
      {x, *value});
}

void GrowConcatenate(GrowingGraph& graph, CoreOp op, DType dtype) {
  ValueId x = graph.Any(dtype, /*exact=*/false);
  if (graph.rank(x) == 0) x = graph.Any(dtype, /*exact=*/false);
  if (graph.rank(x) == 0) return;
  const int64_t dimension = graph.Below(graph.rank(x));
  std::vector<ValueId> operands = {x};
  for (int64_t i = graph.Below(4); i > 0; --i) {
    std::vector<ValueId> fitting;
    for (int32_t v = 0; v < graph.graph().num_values(); ++v) {
      const TensorType& type = graph.Type({v});
      if (type.dtype != dtype || type.rank() != graph.rank(x)) continue;
      bool fits = true;
      for (int64_t axis = 0; axis < type.rank(); ++axis) {
        const size_t k = static_cast<size_t>(axis);
        fits = fits && (axis == dimension || type.shape[k] == graph.Type(x).shape[k]);
      }
      if (fits) fitting.push_back({v});
    }
    operands.push_back(fitting[static_cast<size_t>(graph.Below(static_cast<int64_t>(fitting.size())))]);
  }
  graph.Append(op, AttrsOf(op).Set("dimension", dimension), operands);
}

void GrowReverse(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  graph.Append(op, AttrsOf(op).Set("dimensions", graph.SomeAxes(graph.rank(x), 2)), {x});
}

}  // namespace tensord::property
