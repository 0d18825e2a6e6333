#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {
namespace {

ValueId ProductIn(StaticGraphBuilder* graph, Algebra algebra, ValueId a, ValueId b) {
  Attributes attrs = StaticGraphBuilder::AttrsOf(CoreOp::kDotGeneral);
  attrs.Set("lhs_contracting_dimensions", std::vector<int64_t>{1})
      .Set("rhs_contracting_dimensions", std::vector<int64_t>{0})
      .Set("algebra", static_cast<int64_t>(algebra));
  return graph->Apply(CoreOp::kDotGeneral, {a, b}, std::move(attrs));
}

}  // namespace

Graph AlgebraProductGraph(Algebra algebra, DType dtype, int64_t size) {
  StaticGraphBuilder g("product in another algebra");
  const ValueId a = g.Input("a", dtype, {size, size}), b = g.Input("b", dtype, {size, size});
  g.Output("c", ProductIn(&g, algebra, a, b));
  return g.Take();
}

Graph ShortestPathsGraph(int64_t nodes) {
  StaticGraphBuilder g("shortest paths");
  const Shape shape = {nodes, nodes};
  const ValueId weights = g.Input("weights", DType::kF64, shape);
  const ValueId is_own = g.Compare(CompareDirection::kEq, g.Iota(DType::kI32, shape, 0), g.Iota(DType::kI32, shape, 1));
  ValueId paths = g.Select(is_own, g.Broadcast(g.Scalar(DType::kF64, 0), shape, {}), weights);
  for (int64_t edges = 1; edges < nodes - 1; edges *= 2) paths = ProductIn(&g, Algebra::kMinPlus, paths, paths);
  g.Output("paths", paths);
  return g.Take();
}

Graph SpinGlassGraph(int64_t side) {
  StaticGraphBuilder g("spin glass");
  std::vector<ValueId> tensors;
  std::vector<std::vector<int64_t>> labels;
  const auto add = [&](std::vector<int64_t> of_tensor) {
    const Shape shape(of_tensor.size(), 2);
    tensors.push_back(g.Input("t" + std::to_string(tensors.size()), DType::kF32, shape));
    labels.push_back(std::move(of_tensor));
  };
  for (int64_t site = 0; site < side * side; ++site) add({site});
  for (int64_t site = 0; site < side * side; ++site) {
    if (site % side > 0) add({site - 1, site});
    if (site >= side) add({site - side, site});
  }
  constexpr char kEinsum[] = "tensord.einsum.v1.Einsum";
  g.Output("energy", g.ApplyNamed(kEinsum, tensors,
                                  StaticGraphBuilder::AttrsOf(kEinsum)
                                      .Set("operands", labels)
                                      .Set("output", std::vector<std::vector<int64_t>>{{}})
                                      .Set("algebra", static_cast<int64_t>(Algebra::kMaxPlus)))[0]);
  return g.Take();
}

}  // namespace tensord
