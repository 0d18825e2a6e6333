#include "tests/testlib/graphs/bench_graphs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/testlib/graphs/static_graph_builder.h"

namespace tensord {
namespace {

using Builder = StaticGraphBuilder;

ValueId Square(Builder* g, ValueId x) { return g->Binary(CoreOp::kMultiply, x, x); }

}  // namespace

Graph ElementwiseChainGraph(int64_t elements) {
  Builder g("elementwise chain");
  const ValueId x = g.Input("x", DType::kF64, {elements});
  const ValueId u = g.Binary(CoreOp::kAdd, g.Binary(CoreOp::kMultiply, x, 1.25), 0.5);
  const ValueId positive = g.Compare(CompareDirection::kGt, x, g.Scalar(DType::kF64, 0));
  const ValueId bell = g.Unary(CoreOp::kExp, g.Unary(CoreOp::kNegate, Square(&g, u)));
  const ValueId chosen = g.Select(positive, g.Unary(CoreOp::kTanh, u), bell);
  const ValueId scaled =
      g.Binary(CoreOp::kMultiply, chosen, g.Unary(CoreOp::kRsqrt, g.Binary(CoreOp::kAdd, Square(&g, x), 1)));
  const ValueId sum = g.Binary(CoreOp::kAdd, scaled, g.Unary(CoreOp::kLog1p, g.Unary(CoreOp::kAbs, x)));
  g.Output("y", g.Clamp(g.Scalar(DType::kF64, -3), sum, g.Scalar(DType::kF64, 3)));
  return g.Take();
}

Graph GeluGraph(int64_t columns, int64_t rows) {
  Builder g("gelu");
  const ValueId x = g.Input("x", DType::kF32, {columns, rows});
  const ValueId cube = g.Binary(CoreOp::kMultiply, Square(&g, x), x);
  const ValueId inner = g.Binary(CoreOp::kAdd, x, g.Binary(CoreOp::kMultiply, cube, 0.044715));
  const ValueId tanh = g.Unary(CoreOp::kTanh, g.Binary(CoreOp::kMultiply, inner, 0.7978845608));
  const ValueId half = g.Binary(CoreOp::kMultiply, x, 0.5);
  g.Output("y", g.Binary(CoreOp::kMultiply, half, g.Binary(CoreOp::kAdd, tanh, 1)));
  return g.Take();
}

Graph EquationOfStateGraph(int64_t nx, int64_t ny, int64_t nz) {
  constexpr int kDegree = 9;
  Builder g("equation of state");
  const ValueId salinity = g.Input("sa", DType::kF64, {nx, ny, nz}),
                temperature = g.Input("ct", DType::kF64, {nx, ny, nz});
  const ValueId pressure = g.Broadcast(g.Input("p", DType::kF64, {1, 1, nz}), {nx, ny, nz}, {0, 1, 2});
  const ValueId root = g.Unary(CoreOp::kSqrt, salinity);
  double coefficient = 0.5;
  // Numbers between 0 and 1 that never repeat.
  const auto next = [&] { return coefficient = 3.9 * coefficient * (1 - coefficient); };
  // Evaluates by Horner's rule in each of the three, the innermost first.
  const auto horner = [&](ValueId x, int degree, const auto& term) {
    ValueId sum = term();
    for (int i = 0; i < degree; ++i) sum = g.Binary(CoreOp::kAdd, g.Binary(CoreOp::kMultiply, sum, x), term());
    return sum;
  };
  const auto polynomial = [&] {
    return horner(pressure, 2, [&] {
      return horner(temperature, kDegree, [&] {
        ValueId sum = g.Binary(CoreOp::kMultiply, root, next());
        sum = g.Binary(CoreOp::kAdd, sum, next());
        return g.Binary(CoreOp::kAdd, g.Binary(CoreOp::kMultiply, sum, root), next());
      });
    });
  };
  const ValueId numerator = polynomial(), denominator = polynomial();
  const ValueId quotient = g.Binary(CoreOp::kDivide, numerator, denominator);
  g.Output("y", g.Binary(CoreOp::kAdd, quotient, g.Unary(CoreOp::kLog, g.Binary(CoreOp::kAdd, salinity, 1))));
  return g.Take();
}

Graph TransposeGraph(const std::vector<int64_t>& shape, const std::vector<int64_t>& permutation) {
  Builder g("transpose");
  g.Output("y", g.Transpose(g.Input("x", DType::kF64, Shape(shape.begin(), shape.end())), permutation));
  return g.Take();
}

Graph AdamWGraph(int64_t elements) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kRate = 1e-3, kEpsilon = 1e-8, kDecay = 0.01;
  Builder g("adamw");
  const ValueId p = g.Input("p", DType::kF32, {elements}), m = g.Input("m", DType::kF32, {elements}),
                v = g.Input("v", DType::kF32, {elements}), gradient = g.Input("g", DType::kF32, {elements}),
                step = g.Input("step", DType::kF32, {});
  const auto mixed = [&](ValueId old, double beta, ValueId fresh) {
    return g.Binary(CoreOp::kAdd, g.Binary(CoreOp::kMultiply, old, beta), g.Binary(CoreOp::kMultiply, fresh, 1 - beta));
  };
  const auto corrected = [&](ValueId moment, double beta) {
    const ValueId power = g.Binary(CoreOp::kPow, g.Scalar(DType::kF32, beta), step);
    return g.Binary(CoreOp::kDivide, moment, g.Binary(CoreOp::kSubtract, g.Scalar(DType::kF32, 1), power));
  };
  const ValueId new_m = mixed(m, kBeta1, gradient), new_v = mixed(v, kBeta2, Square(&g, gradient));
  const ValueId root = g.Unary(CoreOp::kSqrt, corrected(new_v, kBeta2));
  const ValueId ratio = g.Binary(CoreOp::kDivide, corrected(new_m, kBeta1), g.Binary(CoreOp::kAdd, root, kEpsilon));
  const ValueId change = g.Binary(CoreOp::kAdd, ratio, g.Binary(CoreOp::kMultiply, p, kDecay));
  g.Output("p", g.Binary(CoreOp::kSubtract, p, g.Binary(CoreOp::kMultiply, change, kRate)));
  g.Output("m", new_m);
  g.Output("v", new_v);
  return g.Take();
}

Graph SoftmaxGraph(int64_t columns, int64_t rows) {
  Builder g("softmax");
  const ValueId x = g.Input("x", DType::kF32, {columns, rows});
  const ValueId largest = g.ReduceAndRepeat(ReduceKind::kMax, x, {0});
  const ValueId e = g.Unary(CoreOp::kExp, g.Binary(CoreOp::kAdd, x, g.Unary(CoreOp::kNegate, largest)));
  g.Output("y", g.Binary(CoreOp::kDivide, e, g.ReduceAndRepeat(ReduceKind::kSum, e, {0})));
  return g.Take();
}

Graph LayerNormGraph(int64_t columns, int64_t rows) {
  Builder g("layer norm");
  const ValueId x = g.Input("x", DType::kF32, {columns, rows}), scale = g.Input("scale", DType::kF32, {columns}),
                shift = g.Input("shift", DType::kF32, {columns});
  const double n = static_cast<double>(columns);
  const ValueId mean = g.Binary(CoreOp::kDivide, g.Reduce(ReduceKind::kSum, x, {0}), n);
  const ValueId centred = g.Binary(CoreOp::kSubtract, x, g.Broadcast(mean, {columns, rows}, {1}));
  const ValueId variance = g.Binary(CoreOp::kDivide, g.Reduce(ReduceKind::kSum, Square(&g, centred), {0}), n);
  const ValueId inverse = g.Unary(CoreOp::kRsqrt, g.Binary(CoreOp::kAdd, variance, 1e-5));
  const ValueId normal = g.Binary(CoreOp::kMultiply, centred, g.Broadcast(inverse, {columns, rows}, {1}));
  const ValueId scaled = g.Binary(CoreOp::kMultiply, normal, g.Broadcast(scale, {columns, rows}, {0}));
  g.Output("y", g.Binary(CoreOp::kAdd, scaled, g.Broadcast(shift, {columns, rows}, {0})));
  return g.Take();
}

Graph FiveReductionsGraph(int64_t n) {
  Builder g("five reductions");
  const ValueId x = g.Input("x", DType::kF64, {n, n, n});
  g.Output("sum", g.Reduce(ReduceKind::kSum, x, {0}));
  g.Output("max", g.Reduce(ReduceKind::kMax, x, {1}));
  g.Output("min", g.Reduce(ReduceKind::kMin, x, {2}));
  g.Output("squares", g.Reduce(ReduceKind::kSum, Square(&g, x), {0, 1, 2}));
  const ValueId both = g.Reduce(ReduceKind::kSum, x, {0, 1});
  g.Output("mean", g.Binary(CoreOp::kDivide, both, static_cast<double>(n * n)));
  return g.Take();
}

Graph HorizontalDiffusionGraph(int64_t levels, int64_t columns, int64_t rows) {
  Builder g("horizontal diffusion");
  const ValueId in = g.Input("in", DType::kF64, {levels, columns, rows});
  const ValueId coefficient = g.Input("coefficient", DType::kF64, {levels, columns - 4, rows - 4});
  // x[:, j:j+width, i:i+height].
  const auto window = [&](ValueId x, int64_t j, int64_t width, int64_t i, int64_t height) {
    return g.Slice(x, {0, j, i}, {levels, j + width, i + height});
  };
  const auto sub = [&](ValueId a, ValueId b) { return g.Binary(CoreOp::kSubtract, a, b); };
  const auto add = [&](ValueId a, ValueId b) { return g.Binary(CoreOp::kAdd, a, b); };
  const int64_t w = columns - 4, h = rows - 4;
  const ValueId around = add(add(window(in, 1, w + 2, 2, h + 2), window(in, 1, w + 2, 0, h + 2)),
                             add(window(in, 2, w + 2, 1, h + 2), window(in, 0, w + 2, 1, h + 2)));
  const ValueId laplacian = sub(g.Binary(CoreOp::kMultiply, window(in, 1, w + 2, 1, h + 2), 4), around);
  // The flux between two cells, none if it would steepen the slope.
  const auto flux = [&](ValueId change, ValueId slope) {
    const ValueId product = g.Binary(CoreOp::kMultiply, change, slope);
    const ValueId zero = g.Broadcast(g.Scalar(DType::kF64, 0), g.ShapeOf(change), {});
    return g.Select(g.Compare(CompareDirection::kGt, product, zero), zero, change);
  };
  const ValueId along = flux(sub(window(laplacian, 1, w, 1, h + 1), window(laplacian, 1, w, 0, h + 1)),
                             sub(window(in, 2, w, 2, h + 1), window(in, 2, w, 1, h + 1)));
  const ValueId across = flux(sub(window(laplacian, 1, w + 1, 1, h), window(laplacian, 0, w + 1, 1, h)),
                              sub(window(in, 2, w + 1, 2, h), window(in, 1, w + 1, 2, h)));
  const ValueId divergence = add(sub(window(along, 0, w, 1, h), window(along, 0, w, 0, h)),
                                 sub(window(across, 1, w, 0, h), window(across, 0, w, 0, h)));
  g.Output("out", sub(window(in, 2, w, 2, h), g.Binary(CoreOp::kMultiply, coefficient, divergence)));
  return g.Take();
}

namespace {

// Returns the scratch for n x n numbers in F64, `matrices` of them.
NeededScratch NeededByDivideAndConquer(absl::string_view op, int64_t matrices, int64_t n) {
  return {.op = absl::StrCat("tensord.linalg.v1.", op),
          .bytes = matrices * n * n * 8,
          .reason = "the reflectors that made the matrix narrow, and where divide and conquer multiplies vectors"};
}

NeededScratch NeededByOrder(int64_t bytes) {
  return {
      .op = "dot_general", .bytes = bytes, .reason = "a product whose axes come in another order than the result's"};
}

}  // namespace

std::vector<BenchGraph> AllBenchGraphs() {
  // A size of the benchmark, scaled; at least `least`.
  const auto at = [](double scale, int64_t size, int64_t least) {
    return std::max(least, static_cast<int64_t>(std::lround(scale * static_cast<double>(size))));
  };
  return {
      {"G01 elementwise chain", [=](double s) { return ElementwiseChainGraph(at(s, 4194304, 1)); }},
      {"G01 GELU", [=](double s) { return GeluGraph(1024, at(s, 4096, 1)); }},
      {"G02 equation of state", [=](double s) { return EquationOfStateGraph(204, 204, at(s, 26, 1)); }},
      {"G03 AdamW", [=](double s) { return AdamWGraph(at(s, 4194304, 1)); }},
      {"G04 softmax", [=](double s) { return SoftmaxGraph(1024, at(s, 4096, 1)); }},
      {"G05 LayerNorm", [=](double s) { return LayerNormGraph(768, at(s, 8192, 1)); }},
      {"G06 five reductions", [=](double s) { return FiveReductionsGraph(at(std::cbrt(s), 256, 2)); }},
      {"G07 transpose 2-D",
       [=](double s) {
         return TransposeGraph({at(s, 2048, 2), 2048}, {1, 0});
       }},
      {"G07 transpose 3-D",
       [=](double s) {
         return TransposeGraph({256, at(s, 256, 2), 256}, {2, 0, 1});
       }},
      {"G07 transpose 15-D reversed",
       [=](double) {
         return TransposeGraph(std::vector<int64_t>(15, 3), {14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
       }},
      {"G08 diffusion", [=](double s) { return HorizontalDiffusionGraph(at(s, 160, 1), 132, 132); }},
      {"G09 embedding", [=](double s) { return EmbeddingGraph(128, at(s, 65536, 1), at(s, 65536, 1)); }},
      {"G10 KV cache step", [=](double s) { return KvCacheStepGraph(64, at(s, 4096, 1), 32); }},
      {"G11 product", [=](double s) { return MatrixProductGraph(at(std::cbrt(s), 1024, 2), 1); }},
      {"G12 batched product", [=](double s) { return MatrixProductGraph(128, at(s, 32, 1)); }},
      {"G13 MLP", [=](double s) { return MlpGraph(at(s, 256, 1)); }},
      {"G13 wide layer", [=](double s) { return LayerGraph(64, 4096, at(s, 4096, 1)); }},
      {"G14 attention", [=](double s) { return AttentionGraph(64, 512, at(s, 32, 1)); }},
      {"G15 encoder layer", [=](double s) { return EncoderLayerGraph(512, at(s, 256, 2), 8, 2048); }},
      {"G16 convolution", [=](double s) { return ConvolutionGraph(56, 32, 64, at(s, 8, 1)); }},
      {"G17 Gaussian process", [=](double s) { return GaussianProcessGraph(at(s, 1024, 2), 8); }},
      {"G18 two-site update",
       [=](double s) { return TwoSiteUpdateGraph(at(s, 128, 2), 2); },
       {NeededByDivideAndConquer("Svd", 4, 256)}},
      {"G19 SVD 8x8", [=](double s) { return MatrixOpGraph("svd", 8, at(s, 4096, 1), 1); }},
      {"G19 solve 16x16", [=](double s) { return MatrixOpGraph("solve", 16, at(s, 1024, 1), 1); }},
      {"G20 SVD",
       [=](double s) { return MatrixOpGraph("svd", at(s, 512, 2), 1, 16); },
       {NeededByDivideAndConquer("Svd", 4, 512)}},
      {"G20 QR",
       [=](double s) { return MatrixOpGraph("qr", at(s, 512, 2), 1, 16); },
       {{.op = "tensord.linalg.v1.Qr",
         .bytes = 3 * 512 * 64 * 8,
         .reason = "a block of reflectors beside zeros and ones, and what it makes of the other columns, twice"}}},
      {"G20 eigenvectors",
       [=](double s) { return MatrixOpGraph("eigh", at(s, 512, 2), 1, 16); },
       {NeededByDivideAndConquer("Eigh", 2, 512)}},
      {"G20 determinant", [=](double s) { return MatrixOpGraph("lu", at(s, 512, 2), 1, 16); }},
      {"G20 Cholesky", [=](double s) { return MatrixOpGraph("cholesky", at(s, 512, 2), 1, 16); }},
      {"G20 solve",
       [=](double s) { return MatrixOpGraph("solve", at(s, 512, 2), 1, 16); },
       {{.op = "tensord.linalg.v1.Solve",
         .bytes = 512 * 512 * 8,
         .reason = "the factors of a matrix that is the caller's, while the result has 16 columns"}}},
      {"G21 padding", [=](double s) { return PaddedOperandsGraph(at(s, 1000000, 2)); }},
      {"G21 spectra", [=](double s) { return SpectrumProductGraph(at(s, 1000001, 2)); }},
      {"G21 Poisson factor", [=](double s) { return PoissonFactorGraph(at(s, 1024, 2)); }},
      {"G21 convolution",
       [=](double s) { return TransformedConvolutionGraph(at(s, 1000000, 2)); },
       {{.op = "tensord.fft.v1.Fft",
         .bytes = 1000000 * 16,
         .reason = "a line between its columns and its rows: neither lies where the other is read"}}},
      {"G21 Poisson solver", [=](double s) { return PoissonSolverGraph(at(s, 1024, 2)); }},
      {"G26 conjugate gradients", [=](double s) { return ConjugateGradientsGraph(at(s, 256, 2), 10); }},
      {"G22 circuit", [=](double s) { return CircuitGraph(at(1 + std::log2(s) / 20, 20, 2), 20); }},
      {"G23 DMRG", [=](double s) { return DmrgGraph(at(s, 256, 2), 5, 2); }},
      {"G24a matrix chain", [=](double s) { return MatrixChainGraph(100, at(s, 500, 20)); }},
      {"G24b MPS inner product", [=](double s) { return MpsInnerProductGraph(200, at(s, 64, 2), 2); }},
      {"G25 abcde-efbad-cf", [](double) { return ContractionGraph("abcde-efbad-cf", "a24b16c24d16e24f16"); }},
      {"G25 abcd-dbea-ec",
       [](double) { return ContractionGraph("abcd-dbea-ec", "a48b32c32d48e48"); },
       {NeededByOrder(48 * 32 * 32 * 48 * 8)}},
      {"G25 abcdef-dega-gfbc", [](double) { return ContractionGraph("abcdef-dega-gfbc", "a24b12c12d24e12f12g24"); }},
      {"G25 ab-acd-dbc", [](double) { return ContractionGraph("ab-acd-dbc", "a120b100c100d120"); }},
      {"G25 abcd-aebf-dfce", [](double) { return ContractionGraph("abcd-aebf-dfce", "a48b32c32d48e32f32"); }},
  };
}

}  // namespace tensord
