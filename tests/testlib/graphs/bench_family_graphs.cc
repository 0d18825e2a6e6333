#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {
namespace {

using Builder = StaticGraphBuilder;
using Ints = std::vector<int64_t>;

enum class FftKind : int64_t { kFft = 1, kIfft = 2, kRfft = 3, kIrfft = 4 };

ValueId Transformed(Builder* g, FftKind kind, ValueId x, const Ints& axes, const Ints& lengths) {
  constexpr char kFft[] = "tensord.fft.v1.Fft";
  return g->ApplyNamed(
      kFft, {x},
      Builder::AttrsOf(kFft).Set("kind", static_cast<int64_t>(kind)).Set("axes", axes).Set("lengths", lengths))[0];
}

// log |x|, summed along axis 0.
ValueId SumOfLogs(Builder* g, ValueId x) {
  return g->Reduce(ReduceKind::kSum, g->Unary(CoreOp::kLog, g->Unary(CoreOp::kAbs, x)), {0});
}

ValueId Diagonal(Builder* g, ValueId matrices) {
  return g->Apply(CoreOp::kExtractDiag, {matrices},
                  Builder::AttrsOf(CoreOp::kExtractDiag).Set("axis_a", int64_t{0}).Set("axis_b", int64_t{1}));
}

}  // namespace

Graph GaussianProcessGraph(int64_t count, int64_t features) {
  constexpr double kNoise = 0.1;
  Builder g("gaussian process");
  const ValueId x = g.Input("x", DType::kF64, {count, features}), y = g.Input("y", DType::kF64, {count});
  const ValueId lengths = g.Reduce(ReduceKind::kSum, g.Binary(CoreOp::kMultiply, x, x), {1});
  const ValueId sums =
      g.Binary(CoreOp::kAdd, g.Broadcast(lengths, {count, count}, {0}), g.Broadcast(lengths, {count, count}, {1}));
  const ValueId products = g.Binary(CoreOp::kMultiply, g.Dot(x, x, {1}, {1}), 2);
  const ValueId distances = g.Binary(CoreOp::kSubtract, sums, products);
  const ValueId kernel = g.Unary(CoreOp::kExp, g.Binary(CoreOp::kMultiply, distances, -0.5));
  const ValueId noise =
      g.Apply(CoreOp::kEmbedDiag, {g.Broadcast(g.Scalar(DType::kF64, kNoise), {count}, {})},
              Builder::AttrsOf(CoreOp::kEmbedDiag).Set("axis_a", int64_t{0}).Set("axis_b", int64_t{1}));
  const ValueId lower = g.ApplyNamed("tensord.linalg.v1.Cholesky", {g.Binary(CoreOp::kAdd, kernel, noise)})[0];
  constexpr char kSolve[] = "tensord.linalg.v1.TriangularSolve";
  const ValueId whitened = g.ApplyNamed(kSolve, {lower, g.Reshape(y, {count, 1})},
                                        Builder::AttrsOf(kSolve).Set("left_side", true).Set("lower", true))[0];
  const ValueId misfit = g.Reduce(ReduceKind::kSum, g.Binary(CoreOp::kMultiply, whitened, whitened), {0, 1});
  const ValueId volume = SumOfLogs(&g, Diagonal(&g, lower));
  const ValueId both = g.Binary(CoreOp::kAdd, g.Binary(CoreOp::kMultiply, misfit, 0.5), volume);
  const double constant = 0.5 * static_cast<double>(count) * std::log(2 * std::numbers::pi);
  g.Output("loglikelihood", g.Unary(CoreOp::kNegate, g.Binary(CoreOp::kAdd, both, constant)));
  return g.Take();
}

Graph TwoSiteUpdateGraph(int64_t bond, int64_t physical) {
  Builder g("two-site update");
  const Shape site = {bond, physical, bond};
  const ValueId left = g.Input("first", DType::kF64, site), right = g.Input("second", DType::kF64, site),
                gate = g.Input("gate", DType::kF64, {physical, physical, physical, physical});
  constexpr char kEinsum[] = "tensord.einsum.v1.Einsum";
  const ValueId theta = g.ApplyNamed(kEinsum, {left, right, gate},
                                     Builder::AttrsOf(kEinsum).Set("equation", std::string("aib,bjc,ijkl->aklc")))[0];
  const ValueId matrix = g.Reshape(theta, {bond * physical, physical * bond});
  const std::vector<ValueId> factors = g.ApplyNamed("tensord.linalg.v1.Svd", {matrix});
  const ValueId values = g.Slice(factors[1], {0}, {bond});
  const ValueId length =
      g.Unary(CoreOp::kSqrt, g.Reduce(ReduceKind::kSum, g.Binary(CoreOp::kMultiply, values, values), {0}));
  g.Output("u", g.Reshape(g.Slice(factors[0], {0, 0}, {bond * physical, bond}), {bond, physical, bond}));
  g.Output("s", g.Binary(CoreOp::kDivide, values, length));
  g.Output("vh", g.Reshape(g.Slice(factors[2], {0, 0}, {bond, physical * bond}), {bond, physical, bond}));
  return g.Take();
}

Graph MatrixOpGraph(absl::string_view op, int64_t size, int64_t batch, int64_t right_sides, DType dtype) {
  Builder g(op);
  const auto shape = [&](int64_t columns) { return batch == 1 ? Shape{size, columns} : Shape{size, columns, batch}; };
  const ValueId a = g.Input("a", dtype, shape(size));
  const auto give = [&](const std::vector<const char*>& names, const std::vector<ValueId>& values) {
    for (size_t i = 0; i < names.size(); ++i) g.Output(names[i], values[i]);
  };
  if (op == "svd") {
    give({"u", "s", "vh"}, g.ApplyNamed("tensord.linalg.v1.Svd", {a}));
  } else if (op == "qr") {
    give({"q", "r"}, g.ApplyNamed("tensord.linalg.v1.Qr", {a}));
  } else if (op == "eigh") {
    give({"w", "v"}, g.ApplyNamed("tensord.linalg.v1.Eigh", {a}));
  } else if (op == "cholesky") {
    give({"l"}, g.ApplyNamed("tensord.linalg.v1.Cholesky", {a}));
  } else if (op == "solve") {
    const ValueId b = g.Input("b", dtype, shape(right_sides));
    give({"x"}, g.ApplyNamed("tensord.linalg.v1.Solve", {a, b}));
  } else {
    const ValueId upper = g.ApplyNamed("tensord.linalg.v1.Lu", {a})[2];
    g.Output("logdet", SumOfLogs(&g, Diagonal(&g, upper)));
  }
  return g.Take();
}

Graph TransformedConvolutionGraph(int64_t n) {
  Builder g("transformed convolution");
  const ValueId x = g.Input("x", DType::kF64, {n}), k = g.Input("k", DType::kF64, {n});
  const ValueId reversed =
      g.Apply(CoreOp::kReverse, {k}, Builder::AttrsOf(CoreOp::kReverse).Set("dimensions", Ints{0}));
  const ValueId a = Transformed(&g, FftKind::kRfft, x, {0}, {2 * n}),
                b = Transformed(&g, FftKind::kRfft, reversed, {0}, {2 * n});
  g.Output("y", Transformed(&g, FftKind::kIrfft, g.Binary(CoreOp::kMultiply, a, b), {0}, {2 * n}));
  return g.Take();
}

Graph PoissonSolverGraph(int64_t n) {
  Builder g("poisson solver");
  const ValueId x = g.Input("x", DType::kC128, {n, n});
  const ValueId along = g.Broadcast(g.Input("along", DType::kF64, {n}), {n, n}, {0}),
                across = g.Broadcast(g.Input("across", DType::kF64, {n}), {n, n}, {1});
  const ValueId factor = g.Binary(CoreOp::kDivide, g.Broadcast(g.Scalar(DType::kF64, 1), {n, n}, {}),
                                  g.Binary(CoreOp::kAdd, along, across));
  const ValueId spectrum = Transformed(&g, FftKind::kFft, x, {0, 1}, {});
  const ValueId scaled = g.Binary(CoreOp::kMultiply, spectrum, g.Convert(factor, DType::kC128));
  g.Output("y", Transformed(&g, FftKind::kIfft, scaled, {0, 1}, {}));
  return g.Take();
}

Graph EinsumGraph(const TensorNetwork& network) {
  constexpr char kEinsum[] = "tensord.einsum.v1.Einsum";
  Builder g("einsum");
  std::vector<ValueId> operands;
  for (const Ints& shape : network.shapes) {
    operands.push_back(g.Input(absl::StrCat("t", operands.size()), DType::kF64, Shape(shape.begin(), shape.end())));
  }
  g.Output("y", g.ApplyNamed(kEinsum, operands,
                             Builder::AttrsOf(kEinsum)
                                 .Set("operands", network.operands)
                                 .Set("output", std::vector<Ints>{network.output})
                                 .Set("path", network.path))[0]);
  return g.Take();
}

}  // namespace tensord
