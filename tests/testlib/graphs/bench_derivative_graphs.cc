#include "tests/testlib/graphs/bench_derivative_graphs.h"

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/autodiff/differentiate.h"
#include "engine/ops/derivatives/terms.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {
namespace {

using Builder = StaticGraphBuilder;

ValueId Times(Builder* g, ValueId a, ValueId b) { return g->Binary(CoreOp::kMultiply, a, b); }

ValueId SumOfAll(Builder* g, ValueId x) {
  Builder::Axes axes;
  for (size_t i = 0; i < g->ShapeOf(x).size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes.empty() ? x : g->Reduce(ReduceKind::kSum, x, axes);
}

ValueId SumOfSquares(Builder* g, ValueId x) { return SumOfAll(g, Times(g, x, x)); }

// w x + b.
ValueId Layer(Builder* g, const std::string& name, int64_t out, ValueId x) {
  const ValueId w = g->Input(name + "_w", DType::kF32, {out, g->ShapeOf(x)[0]});
  const ValueId product = g->Dot(w, x, {1}, {0});
  const ValueId b = g->Input(name + "_b", DType::kF32, {out});
  return g->Binary(CoreOp::kAdd, product, g->Broadcast(b, g->ShapeOf(product), {0}));
}

// The distribution function of the standard normal distribution.
ValueId Normal(Builder* g, ValueId x) {
  const ValueId erf = g->Unary(CoreOp::kErf, g->Binary(CoreOp::kMultiply, x, 1 / std::numbers::sqrt2));
  return g->Binary(CoreOp::kMultiply, g->Binary(CoreOp::kAdd, erf, 1), 0.5);
}

}  // namespace

Graph SumOfSquares(const Graph& graph) {
  Graph loss = Graph::EmptyLike(graph);
  for (const GraphInput& input : graph.inputs()) loss.AddInput(input.name, input.type);
  for (const Node& node : graph.nodes()) {
    const ValueId first = loss.AddNode(node);
    for (int32_t r = 0; r < node.num_results; ++r) {
      loss.set_type({first.index + r}, graph.type({node.first_result.index + r}));
    }
  }
  DerivativeBuilder builder(&loss, {});
  builder.SetNode("loss", "", "part");
  Terms e(builder);
  ValueId sum;
  for (const GraphOutput& output : graph.outputs()) {
    const ValueId squares = e.Mul(output.value, output.value);
    sum = e.Sum(sum, e.Reduce(ReduceKind::kSum, squares, AllAxes(graph.type(output.value).shape.size())));
  }
  loss.AddOutput("loss", sum);
  return loss;
}

Graph ClassifierLossGraph(int64_t batch) {
  Builder g("classifier");
  ValueId x = g.Input("x", DType::kF32, {784, batch});
  const ValueId wanted = g.Input("t", DType::kF32, {10, batch});
  for (const char* layer : {"first", "second"}) x = g.Binary(CoreOp::kMaximum, Layer(&g, layer, 512, x), 0.0);
  x = Layer(&g, "last", 10, x);
  const ValueId shifted = g.Binary(CoreOp::kSubtract, x, g.ReduceAndRepeat(ReduceKind::kMax, x, {0}));
  const ValueId sums = g.Reduce(ReduceKind::kSum, g.Unary(CoreOp::kExp, shifted), {0});
  const ValueId logs = g.Broadcast(g.Unary(CoreOp::kLog, sums), g.ShapeOf(x), {1});
  const ValueId sum = SumOfAll(&g, Times(&g, wanted, g.Binary(CoreOp::kSubtract, shifted, logs)));
  g.Output("loss", g.Binary(CoreOp::kMultiply, sum, -1.0 / static_cast<double>(batch)));
  return g.Take();
}

Graph CallPricesGraph(int64_t options) {
  Builder g("call prices");
  const auto input = [&](const char* name) { return g.Input(name, DType::kF64, {options}); };
  const ValueId spot = input("spot"), strike = input("strike"), rate = input("rate"), volatility = input("volatility"),
                time = input("time");
  const ValueId spread = Times(&g, volatility, g.Unary(CoreOp::kSqrt, time));
  const ValueId drift = Times(
      &g, g.Binary(CoreOp::kAdd, rate, g.Binary(CoreOp::kMultiply, Times(&g, volatility, volatility), 0.5)), time);
  const ValueId moneyness = g.Unary(CoreOp::kLog, g.Binary(CoreOp::kDivide, spot, strike));
  const ValueId above = g.Binary(CoreOp::kDivide, g.Binary(CoreOp::kAdd, moneyness, drift), spread);
  const ValueId below = g.Binary(CoreOp::kSubtract, above, spread);
  const ValueId discount = g.Unary(CoreOp::kExp, g.Unary(CoreOp::kNegate, Times(&g, rate, time)));
  const ValueId paid = Times(&g, Times(&g, strike, discount), Normal(&g, below));
  g.Output("loss", SumOfAll(&g, g.Binary(CoreOp::kSubtract, Times(&g, spot, Normal(&g, above)), paid)));
  return g.Take();
}

Graph PickedRowsGraph(int64_t columns, int64_t rows, int64_t count) {
  Builder g("picked rows");
  using Ints = std::vector<int64_t>;
  const ValueId table = g.Input("table", DType::kF32, {columns, rows});
  const ValueId indices = g.Input("indices", DType::kI32, {count});
  const ValueId picked = g.Apply(CoreOp::kGather, {table, indices},
                                 Builder::AttrsOf(CoreOp::kGather)
                                     .Set("offset_dims", Ints{0})
                                     .Set("collapsed_slice_dims", Ints{1})
                                     .Set("start_index_map", Ints{1})
                                     .Set("index_vector_dim", int64_t{1})
                                     .Set("slice_sizes", Ints{columns, 1}));
  const ValueId others = g.Input("others", DType::kF32, {columns, count});
  g.Output("loss", SumOfAll(&g, Times(&g, Times(&g, picked, picked), others)));
  return g.Take();
}

Graph RecurrenceGraph(int64_t width, int64_t inputs, int64_t batch, int64_t steps) {
  Builder g("recurrence");
  const ValueId w = g.Input("weights", DType::kF32, {width, width}), u = g.Input("u", DType::kF32, {width, inputs}),
                x = g.Input("x", DType::kF32, {inputs, batch, steps});
  ValueId h = g.Input("h", DType::kF32, {width, batch});
  for (int64_t t = 0; t < steps; ++t) {
    const ValueId now = g.Reshape(g.Slice(x, {0, 0, t}, {inputs, batch, t + 1}), {inputs, batch});
    h = g.Unary(CoreOp::kTanh, g.Binary(CoreOp::kAdd, g.Dot(w, h, {1}, {0}), g.Dot(u, now, {1}, {0})));
  }
  g.Output("loss", SumOfSquares(&g, h));
  return g.Take();
}

Graph FactorLossGraph(absl::string_view op, int64_t size) {
  Builder g(op);
  const Shape shape = {size, size};
  const ValueId a = g.Input("a", DType::kF64, shape), c = g.Input("c", DType::kF64, shape);
  const auto weighted = [&](ValueId x) { return SumOfAll(&g, Times(&g, x, c)); };
  if (op == "cholesky") {
    g.Output("loss", weighted(g.ApplyNamed("tensord.linalg.v1.Cholesky", {a})[0]));
  } else if (op == "qr") {
    const std::vector<ValueId> factors = g.ApplyNamed("tensord.linalg.v1.Qr", {a});
    const ValueId q = Times(&g, factors[0], factors[0]), r = Times(&g, factors[1], factors[1]);
    g.Output("loss", g.Binary(CoreOp::kAdd, weighted(q), weighted(r)));
  } else if (op == "eigh") {
    const std::vector<ValueId> factors = g.ApplyNamed("tensord.linalg.v1.Eigh", {a});
    const ValueId scaled = Times(&g, factors[1], g.Broadcast(g.Unary(CoreOp::kLog, factors[0]), shape, {1}));
    g.Output("loss", weighted(g.Dot(scaled, factors[1], {1}, {1})));
  } else {
    const std::vector<ValueId> factors = g.ApplyNamed("tensord.linalg.v1.Svd", {a});
    const ValueId scaled = Times(&g, factors[0], g.Broadcast(g.Unary(CoreOp::kTanh, factors[1]), shape, {1}));
    g.Output("loss", weighted(g.Dot(scaled, factors[2], {1}, {0})));
  }
  return g.Take();
}

Graph ValueAndGradient(const Graph& loss, const std::vector<std::string>& wrt) {
  absl::StatusOr<Graph> gradient =
      Differentiate(loss, {.mode = DerivativeMode::kGrad, .wrt = wrt, .keep_outputs = true});
  if (gradient.ok()) return *std::move(gradient);
  std::cerr << gradient.status() << "\n";
  std::abort();
}

}  // namespace tensord
