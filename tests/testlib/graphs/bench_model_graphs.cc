#include <cmath>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {
namespace {

using Builder = StaticGraphBuilder;

ValueId Softmax(Builder* g, ValueId x) {
  const ValueId e =
      g->Unary(CoreOp::kExp, g->Binary(CoreOp::kSubtract, x, g->ReduceAndRepeat(ReduceKind::kMax, x, {0})));
  return g->Binary(CoreOp::kDivide, e, g->ReduceAndRepeat(ReduceKind::kSum, e, {0}));
}

// w x + b with w f32[out, in], b f32[out] and x [in, columns].
ValueId Dense(Builder* g, absl::string_view name, int64_t out, ValueId x) {
  const int64_t in = g->ShapeOf(x)[0];
  const ValueId w = g->Input(std::string(name) + "_w", DType::kF32, {out, in});
  const ValueId b = g->Input(std::string(name) + "_b", DType::kF32, {out});
  const ValueId product = g->Dot(w, x, {1}, {0});
  return g->Binary(CoreOp::kAdd, product, g->Broadcast(b, g->ShapeOf(product), {0}));
}

ValueId Relu(Builder* g, ValueId x) { return g->Binary(CoreOp::kMaximum, x, 0.0); }

ValueId Gelu(Builder* g, ValueId x) {
  const ValueId cube = g->Binary(CoreOp::kMultiply, g->Binary(CoreOp::kMultiply, x, x), x);
  const ValueId inner = g->Binary(CoreOp::kAdd, x, g->Binary(CoreOp::kMultiply, cube, 0.044715));
  const ValueId tanh = g->Unary(CoreOp::kTanh, g->Binary(CoreOp::kMultiply, inner, 0.7978845608));
  return g->Binary(CoreOp::kMultiply, g->Binary(CoreOp::kMultiply, x, 0.5), g->Binary(CoreOp::kAdd, tanh, 1));
}

ValueId LayerNorm(Builder* g, absl::string_view name, ValueId x) {
  const Shape shape = g->ShapeOf(x);
  const ValueId scale = g->Input(std::string(name) + "_scale", DType::kF32, {shape[0]});
  const ValueId shift = g->Input(std::string(name) + "_shift", DType::kF32, {shape[0]});
  const double n = static_cast<double>(shape[0]);
  const ValueId mean = g->Binary(CoreOp::kDivide, g->ReduceAndRepeat(ReduceKind::kSum, x, {0}), n);
  const ValueId centred = g->Binary(CoreOp::kSubtract, x, mean);
  const ValueId squares = g->Binary(CoreOp::kMultiply, centred, centred);
  const ValueId variance = g->Binary(CoreOp::kDivide, g->ReduceAndRepeat(ReduceKind::kSum, squares, {0}), n);
  const ValueId inverse = g->Unary(CoreOp::kRsqrt, g->Binary(CoreOp::kAdd, variance, 1e-5));
  const ValueId scaled =
      g->Binary(CoreOp::kMultiply, g->Binary(CoreOp::kMultiply, centred, inverse), g->Broadcast(scale, shape, {0}));
  return g->Binary(CoreOp::kAdd, scaled, g->Broadcast(shift, shape, {0}));
}

// The halves of axis 0 of x [depth, heads, sequence], turned by an angle that grows with the position.
ValueId RotatePositions(Builder* g, ValueId x) {
  const Shape shape = g->ShapeOf(x);
  const int64_t half = shape[0] / 2;
  const Shape halves = {half, shape[1], shape[2]};
  const ValueId low = g->Slice(x, {0, 0, 0}, {half, shape[1], shape[2]});
  const ValueId high = g->Slice(x, {half, 0, 0}, {shape[0], shape[1], shape[2]});
  const ValueId exponent = g->Binary(CoreOp::kMultiply, g->Iota(DType::kF32, {half, shape[2]}, 0),
                                     -std::log(1e4) / static_cast<double>(half));
  const ValueId angle =
      g->Binary(CoreOp::kMultiply, g->Iota(DType::kF32, {half, shape[2]}, 1), g->Unary(CoreOp::kExp, exponent));
  const ValueId cosine = g->Broadcast(g->Unary(CoreOp::kCos, angle), halves, {0, 2});
  const ValueId sine = g->Broadcast(g->Unary(CoreOp::kSin, angle), halves, {0, 2});
  const auto times = [&](ValueId a, ValueId b) { return g->Binary(CoreOp::kMultiply, a, b); };
  return g->Concatenate({g->Binary(CoreOp::kSubtract, times(low, cosine), times(high, sine)),
                         g->Binary(CoreOp::kAdd, times(high, cosine), times(low, sine))},
                        0);
}

}  // namespace

Graph EmbeddingGraph(int64_t columns, int64_t rows, int64_t count) {
  Builder g("embedding");
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
  const ValueId update = g.Binary(CoreOp::kMultiply, picked, -0.01);
  g.Output("table", g.Apply(CoreOp::kScatter, {table, indices, update},
                            Builder::AttrsOf(CoreOp::kScatter)
                                .Set("update_window_dims", Ints{0})
                                .Set("inserted_window_dims", Ints{1})
                                .Set("scatter_dims_to_operand_dims", Ints{1})
                                .Set("index_vector_dim", int64_t{1})));
  return g.Take();
}

Graph KvCacheStepGraph(int64_t depth, int64_t length, int64_t heads, DType dtype) {
  Builder g("kv cache step");
  const ValueId q = g.Input("q", dtype, {depth, heads}), k = g.Input("k", dtype, {depth, 1, heads}),
                v = g.Input("v", dtype, {depth, 1, heads}), keys = g.Input("K", dtype, {depth, length, heads}),
                values = g.Input("V", dtype, {depth, length, heads}), position = g.Input("position", DType::kI32, {});
  const ValueId zero = g.Reshape(g.Scalar(DType::kI32, 0), {1});
  const ValueId starts = g.Concatenate({zero, g.Reshape(position, {1}), zero}, 0);
  const ValueId new_keys = g.DynamicUpdateSlice(keys, k, starts);
  const ValueId new_values = g.DynamicUpdateSlice(values, v, starts);
  const auto as = [&g](ValueId x, DType wanted) { return g.DTypeOf(x) == wanted ? x : g.Convert(x, wanted); };
  const ValueId products = as(g.Dot(new_keys, q, {0}, {0}, {2}, {1}), DType::kF32);
  const ValueId scores = g.Binary(CoreOp::kMultiply, products, 1 / std::sqrt(static_cast<double>(depth)));
  const ValueId known = g.Compare(CompareDirection::kLe, g.Iota(DType::kI32, {length, heads}, 0), position);
  const ValueId weights = Softmax(&g, g.Select(known, scores, g.Scalar(DType::kF32, -1e9)));
  g.Output("attention", g.Dot(new_values, as(weights, dtype), {1}, {0}, {2}, {1}));
  g.Output("K", new_keys);
  g.Output("V", new_values);
  return g.Take();
}

Graph MlpGraph(int64_t batch) {
  Builder g("mlp");
  ValueId x = g.Input("x", DType::kF32, {784, batch});
  x = Relu(&g, Dense(&g, "first", 512, x));
  x = Relu(&g, Dense(&g, "second", 512, x));
  g.Output("y", Softmax(&g, Dense(&g, "last", 10, x)));
  return g.Take();
}

Graph LayerGraph(int64_t in, int64_t out, int64_t batch) {
  Builder g("layer");
  g.Output("y", Gelu(&g, Dense(&g, "layer", out, g.Input("x", DType::kF32, {in, batch}))));
  return g.Take();
}

Graph AttentionGraph(int64_t depth, int64_t sequence, int64_t heads) {
  Builder g("attention");
  const ValueId q = g.Input("q", DType::kF32, {depth, sequence, heads}),
                k = g.Input("k", DType::kF32, {depth, sequence, heads}),
                v = g.Input("v", DType::kF32, {depth, sequence, heads});
  const ValueId scores =
      g.Binary(CoreOp::kMultiply, g.Dot(k, q, {0}, {0}, {2}, {2}), 1 / std::sqrt(static_cast<double>(depth)));
  const Shape shape = g.ShapeOf(scores);
  const ValueId seen = g.Compare(CompareDirection::kLe, g.Iota(DType::kI32, shape, 0), g.Iota(DType::kI32, shape, 1));
  const ValueId weights = Softmax(&g, g.Select(seen, scores, g.Scalar(DType::kF32, -1e9)));
  g.Output("y", g.Dot(v, weights, {1}, {0}, {2}, {2}));
  return g.Take();
}

Graph EncoderLayerGraph(int64_t width, int64_t sequence, int64_t heads, int64_t hidden) {
  Builder g("encoder layer");
  const int64_t depth = width / heads;
  const ValueId x = g.Input("x", DType::kF32, {width, sequence});
  const ValueId normal = LayerNorm(&g, "norm1", x);
  const auto by_head = [&](absl::string_view name) {
    return g.Reshape(Dense(&g, name, width, normal), {depth, heads, sequence});
  };
  const ValueId q = RotatePositions(&g, by_head("q")), k = RotatePositions(&g, by_head("k")), v = by_head("v");
  const ValueId scores =
      g.Binary(CoreOp::kMultiply, g.Dot(k, q, {0}, {0}, {1}, {1}), 1 / std::sqrt(static_cast<double>(depth)));
  const ValueId mixed = g.Dot(v, Softmax(&g, scores), {2}, {0}, {1}, {2});  // [depth, sequence, heads]
  const ValueId joined = g.Reshape(g.Transpose(mixed, {0, 2, 1}), {width, sequence});
  const ValueId after = g.Binary(CoreOp::kAdd, x, Dense(&g, "mix", width, joined));
  const ValueId inner = Gelu(&g, Dense(&g, "up", hidden, LayerNorm(&g, "norm2", after)));
  g.Output("y", g.Binary(CoreOp::kAdd, after, Dense(&g, "down", width, inner)));
  return g.Take();
}

Graph ConvolutionGraph(int64_t side, int64_t in, int64_t out, int64_t batch) {
  Builder g("convolution");
  const ValueId x = g.Input("x", DType::kF32, {side, side, in, batch});
  const ValueId w = g.Input("w", DType::kF32, {9 * in, out});
  const ValueId padded = g.Pad(x, 0, {1, 1, 0, 0}, {1, 1, 0, 0});
  std::vector<ValueId> shifted;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      shifted.push_back(g.Slice(padded, {j, i, 0, 0}, {j + side, i + side, in, batch}));
    }
  }
  const ValueId patches = g.Reshape(g.Concatenate(shifted, 2), {side * side, 9 * in, batch});
  const ValueId product = g.Dot(patches, w, {1}, {0});  // [pixels, batch, out]
  g.Output("y", g.Reshape(g.Transpose(product, {0, 2, 1}), {side, side, out, batch}));
  return g.Take();
}

}  // namespace tensord
