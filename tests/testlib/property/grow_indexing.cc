#include "tests/testlib/property/growth_rules.h"

namespace tensord::property {
namespace {

// A vector of start indices for the axes of x: mostly in range, sometimes just or far outside, sometimes computed.
std::optional<ValueId> StartIndices(GrowingGraph& graph, ValueId x) {
  const DType dtype = graph.AnyOf(kIntegers);
  const int64_t rank = graph.rank(x);
  if (graph.OneIn(3)) return graph.WithShape(dtype, {Dim(rank)}, /*exact=*/true);
  Literal starts = Literal::Create({dtype, {rank}}).value();
  VisitDType(dtype, [&]<typename T>(TypeTag<T>) {
    if constexpr (IntegerElement<T>) {
      for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
        const int64_t size = graph.GreatestSize(graph.Type(x).shape[i]);
        T start = static_cast<T>(graph.Between(-1, size + 1));
        if (graph.OneIn(16)) start = graph.OneIn(2) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
        starts.mutable_values<T>()[i] = start;
      }
    }
  });
  return graph.Append(
      CoreOp::kConstant,
      AttrsOf(CoreOp::kConstant).Set("value", LiteralPtr(std::make_shared<const Literal>(std::move(starts)))), {});
}

}  // namespace

void GrowDynamicSlice(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  const auto starts = StartIndices(graph, x);
  if (!starts.has_value()) return;
  Ints sizes;
  for (const Dim& dim : graph.Type(x).shape) {
    const int64_t least = graph.LeastSize(dim);
    sizes.push_back(graph.OneIn(3) ? least : graph.Between(least > 0 && !graph.OneIn(8) ? 1 : 0, least));
  }
  graph.Append(op, AttrsOf(op).Set("slice_sizes", sizes), {x, *starts});
}

void GrowDynamicUpdateSlice(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  const auto starts = StartIndices(graph, x);
  if (!starts.has_value()) return;
  SymbolicShape shape;
  for (const Dim& dim : graph.Type(x).shape) {
    const int64_t least = graph.LeastSize(dim);
    shape.push_back(graph.OneIn(3) ? dim : Dim(graph.Between(least > 0 ? 1 : 0, least)));
  }
  const auto update = graph.WithShape(dtype, shape, /*exact=*/false);
  if (update.has_value()) graph.Append(op, AttrsOf(op), {x, *update, *starts});
}

void GrowDynamicTruncate(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  if (graph.rank(x) == 0) return;
  const int64_t dimension = graph.Below(graph.rank(x));
  const DType size_dtype = graph.AnyOf(kIntegers);
  std::optional<ValueId> size;
  if (graph.OneIn(2)) {
    // A size of any origin: computed, an argument, far outside.
    size = graph.WithShape(size_dtype, {}, /*exact=*/true);
  } else {
    const int64_t extent = graph.GreatestSize(graph.Type(x).shape[static_cast<size_t>(dimension)]);
    const int64_t kept = graph.Between(-1, extent + 1);
    Literal literal = size_dtype == DType::kI32 ? Literal::Scalar(static_cast<int32_t>(kept)) : Literal::Scalar(kept);
    size = graph.Append(
        CoreOp::kConstant,
        AttrsOf(CoreOp::kConstant).Set("value", LiteralPtr(std::make_shared<const Literal>(std::move(literal)))), {});
  }
  if (size.has_value()) graph.Append(op, AttrsOf(op).Set("dimension", dimension), {x, *size});
}

void GrowShapeOf(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  if (graph.rank(x) == 0) return;
  graph.Append(op, AttrsOf(op).Set("dimension", graph.Below(graph.rank(x))), {x});
}

void GrowOptimizationBarrier(GrowingGraph& graph, CoreOp op, DType dtype) {
  std::vector<ValueId> operands = {graph.Any(dtype, /*exact=*/false)};
  for (int64_t i = graph.Below(3); i > 0; --i) operands.push_back(graph.Any());
  graph.Append(op, AttrsOf(op), operands);
}

void GrowPadToMatch(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  if (graph.rank(x) == 0) return;
  const ValueId reference = graph.Any();
  graph.Append(op, AttrsOf(op).Set("dimension", graph.Below(graph.rank(x))), {x, reference});
}

}  // namespace tensord::property
