#include <utility>
#include <vector>

#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {
namespace {

using Builder = StaticGraphBuilder;
using Ints = std::vector<int64_t>;

}  // namespace

Graph OneOpGraph(CoreOp op, DType dtype, int64_t elements) {
  Builder g("one op");
  const ValueId x = g.Input("x", dtype, {elements});
  if (Def(op).op_class == OpClass::kUnary) {
    g.Output("y", g.Unary(op, x));
  } else {
    g.Output("y", g.Binary(op, x, g.Input("z", dtype, {elements})));
  }
  return g.Take();
}

Graph LionGraph(int64_t elements) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.99, kRate = 1e-4, kDecay = 0.1;
  Builder g("lion");
  const ValueId p = g.Input("p", DType::kF32, {elements}), m = g.Input("m", DType::kF32, {elements}),
                gradient = g.Input("g", DType::kF32, {elements});
  const auto mixed = [&](double beta) {
    return g.Binary(CoreOp::kAdd, g.Binary(CoreOp::kMultiply, m, beta),
                    g.Binary(CoreOp::kMultiply, gradient, 1 - beta));
  };
  const ValueId direction = g.Unary(CoreOp::kSign, mixed(kBeta1));
  const ValueId change = g.Binary(CoreOp::kAdd, direction, g.Binary(CoreOp::kMultiply, p, kDecay));
  g.Output("p", g.Binary(CoreOp::kSubtract, p, g.Binary(CoreOp::kMultiply, change, kRate)));
  g.Output("m", mixed(kBeta2));
  return g.Take();
}

Graph ConvertedReductionsGraph(int64_t n) {
  Builder g("converted reductions");
  const ValueId x = g.Convert(g.Input("x", DType::kF32, {n, n, n}), DType::kF64);
  g.Output("sum", g.Reduce(ReduceKind::kSum, x, {0}));
  g.Output("max", g.Reduce(ReduceKind::kMax, x, {1}));
  const ValueId few = g.Slice(x, {0, 0, 0}, {n, n < 64 ? n : 64, n});
  g.Output("product", g.Reduce(ReduceKind::kProduct, few, {1}));
  return g.Take();
}

Graph GatherRowsGraph(int64_t columns, int64_t rows, int64_t count) {
  Builder g("gather rows");
  const ValueId table = g.Input("table", DType::kF32, {columns, rows});
  const ValueId indices = g.Input("indices", DType::kI32, {count});
  g.Output("y", g.Apply(CoreOp::kGather, {table, indices},
                        Builder::AttrsOf(CoreOp::kGather)
                            .Set("offset_dims", Ints{0})
                            .Set("collapsed_slice_dims", Ints{1})
                            .Set("start_index_map", Ints{1})
                            .Set("index_vector_dim", int64_t{1})
                            .Set("slice_sizes", Ints{columns, 1})));
  return g.Take();
}

Graph ScatterAddRowsGraph(int64_t columns, int64_t rows, int64_t count) {
  Builder g("scatter rows");
  const ValueId table = g.Input("table", DType::kF32, {columns, rows});
  const ValueId indices = g.Input("indices", DType::kI32, {count});
  const ValueId update = g.Input("update", DType::kF32, {columns, count});
  g.Output("y", g.Apply(CoreOp::kScatter, {table, indices, update},
                        Builder::AttrsOf(CoreOp::kScatter)
                            .Set("update_window_dims", Ints{0})
                            .Set("inserted_window_dims", Ints{1})
                            .Set("scatter_dims_to_operand_dims", Ints{1})
                            .Set("index_vector_dim", int64_t{1})));
  return g.Take();
}

Graph PaddedOperandsGraph(int64_t n) {
  Builder g("padded operands");
  const ValueId x = g.Input("x", DType::kF64, {n}), k = g.Input("k", DType::kF64, {n});
  const ValueId reversed =
      g.Apply(CoreOp::kReverse, {k}, Builder::AttrsOf(CoreOp::kReverse).Set("dimensions", Ints{0}));
  g.Output("x", g.Pad(x, 0, {0}, {n}));
  g.Output("k", g.Pad(reversed, 0, {0}, {n}));
  return g.Take();
}

Graph SpectrumProductGraph(int64_t n) {
  Builder g("product of spectra");
  const ValueId a = g.Input("a", DType::kC128, {n}), b = g.Input("b", DType::kC128, {n});
  g.Output("y", g.Binary(CoreOp::kMultiply, a, b));
  return g.Take();
}

Graph PoissonFactorGraph(int64_t n) {
  Builder g("poisson factor");
  const ValueId x = g.Input("x", DType::kC128, {n, n});
  const ValueId along = g.Broadcast(g.Input("along", DType::kF64, {n}), {n, n}, {0}),
                across = g.Broadcast(g.Input("across", DType::kF64, {n}), {n, n}, {1});
  const ValueId factor = g.Binary(CoreOp::kDivide, g.Broadcast(g.Scalar(DType::kF64, 1), {n, n}, {}),
                                  g.Binary(CoreOp::kAdd, along, across));
  g.Output("y", g.Binary(CoreOp::kMultiply, x, g.Convert(factor, DType::kC128)));
  return g.Take();
}

Graph ConjugateGradientsGraph(int64_t n, int64_t steps) {
  Builder g("conjugate gradients");
  ValueId u = g.Input("u", DType::kF64, {n, n}), residual = g.Input("residual", DType::kF64, {n, n}),
          direction = g.Input("direction", DType::kF64, {n, n}), squared = g.Input("squared", DType::kF64, {});
  const auto times = [&](ValueId a, ValueId b) { return g.Binary(CoreOp::kMultiply, a, b); };
  const auto total = [&](ValueId x) { return g.Reduce(ReduceKind::kSum, x, {0, 1}); };
  const auto scaled = [&](ValueId factor, ValueId x) { return times(g.Broadcast(factor, {n, n}, {}), x); };
  for (int64_t step = 0; step < steps; ++step) {
    const ValueId wide = g.Pad(direction, 0, {1, 1}, {1, 1});
    ValueId image = g.Binary(CoreOp::kMultiply, direction, 4);
    for (const auto& [i, j] : {std::pair<int64_t, int64_t>{1, 0}, {1, 2}, {0, 1}, {2, 1}}) {
      image = g.Binary(CoreOp::kSubtract, image, g.Slice(wide, {i, j}, {i + n, j + n}));
    }
    const ValueId length = g.Binary(CoreOp::kDivide, squared, total(times(direction, image)));
    u = g.Binary(CoreOp::kAdd, u, scaled(length, direction));
    residual = g.Binary(CoreOp::kSubtract, residual, scaled(length, image));
    const ValueId before = squared;
    squared = total(times(residual, residual));
    direction = g.Binary(CoreOp::kAdd, residual, scaled(g.Binary(CoreOp::kDivide, squared, before), direction));
  }
  g.Output("u", u);
  g.Output("residual", residual);
  g.Output("direction", direction);
  g.Output("squared", squared);
  return g.Take();
}

}  // namespace tensord
