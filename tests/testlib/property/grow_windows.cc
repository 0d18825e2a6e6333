#include <algorithm>

#include "tests/testlib/property/growth_rules.h"

namespace tensord::property {
namespace {

// Axes of a Gather or Scatter of windows of x, as engine/ops/index_windows.h describes them, and the indices.
struct GatheredWindows {
  Ints window_axes;    // of x: those that windows keep, ascending
  Ints dropped_axes;   // of x, ascending
  Ints batching_axes;  // of x, ascending
  Ints indices_batching_axes;
  Ints index_map;
  int64_t index_vector_dim = 0;
  ValueId indices;
  SymbolicShape batch;  // the axes of the indices other than index_vector_dim
  Ints window_dims;     // where window_axes stand in the tensor of windows, ascending
};

bool Contains(const Ints& axes, int64_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// Index vectors along one axis of a tensor: mostly in range, some just or far outside.
LiteralPtr IndexVectors(GrowingGraph& graph, DType dtype, const Shape& shape, size_t vector_axis, const Ints& sizes) {
  auto literal = std::make_shared<Literal>(Literal::Create({dtype, shape}).value());
  const Shape strides = ColumnMajorStrides(shape);
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    if constexpr (IntegerElement<T>) {
      const auto values = literal->mutable_values<T>();
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t component = vector_axis < shape.size()
                                     ? static_cast<size_t>(static_cast<int64_t>(i) / strides[vector_axis]) %
                                           static_cast<size_t>(shape[vector_axis])
                                     : 0;
        const int64_t size = component < sizes.size() ? sizes[component] : 1;
        values[i] =
            static_cast<T>(graph.OneIn(6) ? graph.Between(-2, size + 1) : graph.Below(std::max<int64_t>(size, 1)));
        if (graph.OneIn(30)) {
          values[i] = graph.OneIn(2) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
        }
      }
    }
  });
  return literal;
}

std::optional<GatheredWindows> MakeWindows(GrowingGraph& graph, ValueId x) {
  GatheredWindows w;
  const SymbolicShape shape = graph.Type(x).shape;
  const bool batching = graph.OneIn(3);
  for (int64_t axis = 0; axis < graph.rank(x); ++axis) {
    const int64_t least = graph.LeastSize(shape[static_cast<size_t>(axis)]);
    if (batching && graph.OneIn(3)) {
      w.batching_axes.push_back(axis);
    } else if (least > 0 && graph.OneIn(2)) {
      w.dropped_axes.push_back(axis);
    } else {
      w.window_axes.push_back(axis);
    }
  }
  for (int64_t axis : graph.Permutation(graph.rank(x))) {
    if (!Contains(w.batching_axes, axis) && !graph.OneIn(4)) w.index_map.push_back(axis);
  }

  // The indices: the batching axes somewhere among some more, and the axis of the index vector.
  SymbolicShape indices;
  for (int64_t i = graph.Below(3); i > 0; --i) indices.push_back(Dim(graph.Size()));
  Ints batch_of(indices.size(), -1);  // by axis of the indices: the batching axis of x
  for (int64_t axis : w.batching_axes) {
    const int64_t at = graph.Below(static_cast<int64_t>(indices.size()) + 1);
    indices.insert(indices.begin() + at, shape[static_cast<size_t>(axis)]);
    batch_of.insert(batch_of.begin() + at, axis);
  }
  w.batch = indices;
  const bool implicit = w.index_map.size() == 1 && graph.OneIn(2);
  w.index_vector_dim =
      implicit ? static_cast<int64_t>(indices.size()) : graph.Below(static_cast<int64_t>(indices.size()) + 1);
  if (!implicit) {
    indices.insert(indices.begin() + w.index_vector_dim, Dim(static_cast<int64_t>(w.index_map.size())));
    batch_of.insert(batch_of.begin() + w.index_vector_dim, -1);
  }
  for (int64_t axis : w.batching_axes) {
    w.indices_batching_axes.push_back(std::find(batch_of.begin(), batch_of.end(), axis) - batch_of.begin());
  }

  const DType dtype = graph.AnyOf(kIntegers);
  const bool known = std::all_of(indices.begin(), indices.end(), [](const Dim& dim) { return dim.is_static(); });
  std::optional<ValueId> made;
  if (known && !graph.OneIn(4)) {
    ConcreteType type{.dtype = dtype};
    int64_t elements = 1;
    for (const Dim& dim : indices) {
      type.shape.push_back(dim.size.constant());
      elements *= std::max<int64_t>(1, dim.size.constant());
    }
    if (elements > 512) return std::nullopt;
    Ints sizes;
    for (int64_t axis : w.index_map) {
      sizes.push_back(graph.GreatestSize(shape[static_cast<size_t>(axis)]));
    }
    made = graph.Append(
        CoreOp::kConstant,
        AttrsOf(CoreOp::kConstant)
            .Set("value", IndexVectors(graph, dtype, type.shape, static_cast<size_t>(w.index_vector_dim), sizes)),
        {});
  } else {
    made = graph.WithShape(dtype, indices, /*exact=*/true);
  }
  if (!made.has_value()) return std::nullopt;
  w.indices = *made;

  w.window_dims = graph.Permutation(static_cast<int64_t>(w.batch.size() + w.window_axes.size()));
  w.window_dims.resize(w.window_axes.size());
  std::sort(w.window_dims.begin(), w.window_dims.end());
  return w;
}

Attributes GatherAttrs(CoreOp op, const GatheredWindows& w) {
  return AttrsOf(op)
      .Set("offset_dims", w.window_dims)
      .Set("collapsed_slice_dims", w.dropped_axes)
      .Set("operand_batching_dims", w.batching_axes)
      .Set("start_indices_batching_dims", w.indices_batching_axes)
      .Set("start_index_map", w.index_map)
      .Set("index_vector_dim", w.index_vector_dim);
}

// A window's size along an axis that it keeps.
int64_t WindowSize(GrowingGraph& graph, const Dim& dim) {
  const int64_t least = graph.LeastSize(dim);
  return graph.Between(least > 0 && !graph.OneIn(8) ? 1 : 0, graph.OneIn(3) ? least : std::min<int64_t>(least, 3));
}

}  // namespace

void GrowGather(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  const auto w = MakeWindows(graph, x);
  if (!w.has_value()) return;
  Ints sizes(static_cast<size_t>(graph.rank(x)), 1);
  for (int64_t axis : w->window_axes) {
    const size_t k = static_cast<size_t>(axis);
    sizes[k] = WindowSize(graph, graph.Type(x).shape[k]);
  }
  graph.Append(op, GatherAttrs(op, *w).Set("slice_sizes", sizes), {x, w->indices});
}

void GrowGatherDynamicSliceSizes(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  const auto w = MakeWindows(graph, x);
  if (!w.has_value()) return;
  std::vector<ValueId> operands = {x, w->indices};
  const ValueId source = graph.Any();  // there for its shape alone
  if (graph.rank(source) > 0 && graph.OneIn(2)) operands.push_back(source);
  std::vector<DimExpr> sizes(static_cast<size_t>(graph.rank(x)), DimExpr(1));
  for (int64_t axis : w->window_axes) {
    const size_t k = static_cast<size_t>(axis);
    DimExpr& size = sizes[k];
    if (graph.OneIn(3)) {
      size = WindowSize(graph, graph.Type(x).shape[k]);
    } else if (operands.size() > 2 && graph.OneIn(2)) {
      // At most the axis, whatever the other size is.
      const DimExpr other = DimExpr::OperandAxis(2, graph.Below(graph.rank(source)));
      size = DimExpr::Minimum(other, DimExpr::OperandAxis(0, axis)).value();
      if (graph.OneIn(2)) size = other;
    } else {
      size = DimExpr::OperandAxis(0, axis);
    }
  }
  graph.Append(op, GatherAttrs(op, *w).Set("slice_sizes", sizes), operands);
}

void GrowScatter(GrowingGraph& graph, CoreOp op, DType dtype) {
  const auto combiner = static_cast<ScatterCombiner>(graph.Below(5));
  const bool ordered = combiner == ScatterCombiner::kMinimum || combiner == ScatterCombiner::kMaximum;
  const bool exact = combiner == ScatterCombiner::kMultiply || (ordered && kComplexes.Contains(dtype));
  const ValueId x = graph.Any(dtype, exact);
  const auto w = MakeWindows(graph, x);
  if (!w.has_value()) return;
  SymbolicShape updates(w->batch.size() + w->window_axes.size());
  for (size_t axis = 0, window = 0, batch = 0; axis < updates.size(); ++axis) {
    if (!Contains(w->window_dims, static_cast<int64_t>(axis))) {
      updates[axis] = w->batch[batch++];
      continue;
    }
    const Dim& dim = graph.Type(x).shape[static_cast<size_t>(w->window_axes[window++])];
    updates[axis] = graph.OneIn(3) ? dim : Dim(WindowSize(graph, dim));
  }
  const auto values = graph.WithShape(dtype, updates, exact);
  if (!values.has_value()) return;
  graph.Append(op,
               AttrsOf(op)
                   .Set("update_window_dims", w->window_dims)
                   .Set("inserted_window_dims", w->dropped_axes)
                   .Set("input_batching_dims", w->batching_axes)
                   .Set("scatter_indices_batching_dims", w->indices_batching_axes)
                   .Set("scatter_dims_to_operand_dims", w->index_map)
                   .Set("index_vector_dim", w->index_vector_dim)
                   .Set("combiner", static_cast<int64_t>(combiner)),
               {x, w->indices, *values});
}

}  // namespace tensord::property
