#include "tests/testlib/property/growth_rules.h"

namespace tensord::property {

void GrowExtractDiag(GrowingGraph& graph, CoreOp op, DType dtype) {
  ValueId x = graph.Any(dtype, /*exact=*/false);
  const SymbolicShape shape = graph.Type(x).shape;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t a = 0; a < shape.size(); ++a) {
    for (size_t b = 0; b < shape.size(); ++b) {
      if (a != b && (shape[a] == shape[b] || graph.OneIn(4))) pairs.emplace_back(a, b);
    }
  }
  if (pairs.empty()) {
    const DimExpr size = graph.Size();
    SymbolicShape square = {Dim(size), Dim(size)};
    if (graph.OneIn(2)) square.insert(square.begin() + graph.Below(3), Dim(graph.Between(1, 3)));
    const auto made = graph.WithShape(dtype, square, /*exact=*/false);
    if (!made.has_value()) return;
    x = *made;
    for (int64_t a = 0; a < graph.rank(x); ++a) {
      for (int64_t b = 0; b < graph.rank(x); ++b) {
        const SymbolicShape& made_shape = graph.Type(x).shape;
        if (a != b && made_shape[static_cast<size_t>(a)] == made_shape[static_cast<size_t>(b)])
          pairs.emplace_back(a, b);
      }
    }
  }
  const auto [a, b] = pairs[static_cast<size_t>(graph.Below(static_cast<int64_t>(pairs.size())))];
  graph.Append(op, AttrsOf(op).Set("axis_a", a).Set("axis_b", b), {x});
}

void GrowEmbedDiag(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  if (graph.rank(x) == 0) return;
  graph.Append(op, AttrsOf(op).Set("axis_a", graph.Below(graph.rank(x))).Set("axis_b", graph.Below(graph.rank(x) + 1)),
               {x});
}

void GrowTriangle(GrowingGraph& graph, CoreOp op, DType dtype) {
  const ValueId x = graph.Any(dtype, /*exact=*/false);
  int64_t diagonal = graph.Between(-3, 3);
  if (graph.OneIn(20))
    diagonal = graph.OneIn(2) ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  graph.Append(op, AttrsOf(op).Set("diagonal", diagonal), {x});
}

}  // namespace tensord::property
