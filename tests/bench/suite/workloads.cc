#include "tests/bench/suite/workloads.h"

#include <cmath>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/ops/core_ops.h"
#include "tests/bench/suite/derivative_workloads.h"
#include "tests/testlib/graphs/bench_graphs.h"

namespace tensord {
namespace {

constexpr int64_t kMillion = 1048576;

void AddElementwise(std::vector<Workload>* all) {
  all->push_back({.name = "G01",
                  .graph = [] { return ElementwiseChainGraph(4 * kMillion); },
                  .range = {-4, 4},
                  .is_one_kernel = true});
  all->push_back(
      {.name = "G01_gelu", .graph = [] { return GeluGraph(1024, 4096); }, .range = {-4, 4}, .is_one_kernel = true});
  constexpr CoreOp kAlone[] = {CoreOp::kExp,  CoreOp::kLog,   CoreOp::kSin,   CoreOp::kCos,
                               CoreOp::kTanh, CoreOp::kExpm1, CoreOp::kLog1p, CoreOp::kPow,
                               CoreOp::kSqrt, CoreOp::kRsqrt, CoreOp::kSign,  CoreOp::kDivide};
  for (const DType dtype : {DType::kF64, DType::kF32}) {
    for (const CoreOp op : kAlone) {
      all->push_back({.name = absl::StrCat("G01b_", Def(op).name, "_", Name(dtype)),
                      .graph = [op, dtype] { return OneOpGraph(op, dtype, kMillion); },
                      .range = {0.01, 4},
                      .is_one_kernel = true});
    }
  }
  all->push_back({.name = "G02",
                  .graph = [] { return EquationOfStateGraph(204, 204, 26); },
                  .range = {0.1, 1},
                  .is_one_kernel = true});
  const std::vector<std::pair<std::string, Range>> moments = {
      {"m", {-0.1, 0.1}}, {"v", {1e-4, 0.1}}, {"step", {10, 11}}};
  all->push_back({.name = "G03",
                  .graph = [] { return AdamWGraph(4 * kMillion); },
                  .ranges = moments,
                  .state = {"p", "m", "v"},
                  .rewrites_state = true,
                  .is_one_kernel = true});
  all->push_back({.name = "G03_lion",
                  .graph = [] { return LionGraph(4 * kMillion); },
                  .state = {"p", "m"},
                  .rewrites_state = true,
                  .is_one_kernel = true});
  all->push_back(
      {.name = "G04", .graph = [] { return SoftmaxGraph(1024, 4096); }, .range = {-4, 4}, .is_one_kernel = true});
  all->push_back(
      {.name = "G05", .graph = [] { return LayerNormGraph(768, 8192); }, .range = {-4, 4}, .is_one_kernel = true});
}

void AddLayout(std::vector<Workload>* all) {
  all->push_back({.name = "G06", .graph = [] { return FiveReductionsGraph(256); }});
  all->push_back({.name = "G06b", .graph = [] { return ConvertedReductionsGraph(256); }, .range = {0.98, 1.02}});
  const auto reversed = [](int64_t rank) {
    std::vector<int64_t> axes;
    for (int64_t i = rank; i-- > 0;) axes.push_back(i);
    return axes;
  };
  std::vector<int64_t> cyclic;
  for (int64_t i = 0; i < 15; ++i) cyclic.push_back((i + 1) % 15);
  const auto transpose = [&](const char* name, std::vector<int64_t> shape, std::vector<int64_t> axes) {
    all->push_back({.name = absl::StrCat("G07_", name), .graph = [shape = std::move(shape), axes = std::move(axes)] {
                      return TransposeGraph(shape, axes);
                    }});
  };
  transpose("2d", {2048, 2048}, {1, 0});
  transpose("3d_201", {256, 256, 256}, {2, 0, 1});
  transpose("3d_102", {256, 256, 256}, {1, 0, 2});
  transpose("6d", {16, 16, 16, 16, 16, 16}, {5, 0, 4, 1, 3, 2});
  transpose("23d_reversed", std::vector<int64_t>(23, 2), reversed(23));
  transpose("15d_reversed", std::vector<int64_t>(15, 3), reversed(15));
  transpose("15d_cyclic", std::vector<int64_t>(15, 3), cyclic);
  all->push_back({.name = "G08", .graph = [] { return HorizontalDiffusionGraph(160, 132, 132); }});
  constexpr int64_t kRows = 65536;
  const std::pair<std::string, Range> indices = {"indices", {0, double{kRows}}};
  all->push_back(
      {.name = "G09_gather", .graph = [] { return GatherRowsGraph(128, kRows, kRows); }, .ranges = {indices}});
  all->push_back(
      {.name = "G09_scatter", .graph = [] { return ScatterAddRowsGraph(128, kRows, kRows); }, .ranges = {indices}});
  all->push_back({.name = "G10",
                  .graph = [] { return KvCacheStepGraph(64, 4096, 32); },
                  .ranges = {{"position", {4095, 4096}}},
                  .state = {"K", "V"}});
  all->push_back({.name = "G10_bf16",
                  .graph = [] { return KvCacheStepGraph(64, 4096, 32, DType::kBF16); },
                  .ranges = {{"position", {4095, 4096}}},
                  .state = {"K", "V"}});
}

void AddProducts(std::vector<Workload>* all) {
  all->push_back({.name = "G11_f64_256", .graph = [] { return MatrixProductGraph(256, 1); }});
  all->push_back({.name = "G11_f64_1024", .graph = [] { return MatrixProductGraph(1024, 1); }});
  all->push_back({.name = "G11_f32_1024", .graph = [] { return MatrixProductGraph(1024, 1, DType::kF32); }});
  all->push_back({.name = "G11_bf16_1024", .graph = [] { return MatrixProductGraph(1024, 1, DType::kBF16); }});
  all->push_back({.name = "G11_f16_1024", .graph = [] { return MatrixProductGraph(1024, 1, DType::kF16); }});
  all->push_back({.name = "G12_64", .graph = [] { return MatrixProductGraph(64, 32); }});
  all->push_back({.name = "G12_128", .graph = [] { return MatrixProductGraph(128, 32); }});
  all->push_back(
      {.name = "G13", .graph = [] { return MlpGraph(256); }, .range = {-0.08, 0.08}, .ranges = {{"x", {-1, 1}}}});
  all->push_back({.name = "G13_wide",
                  .graph = [] { return LayerGraph(64, 4096, 4096); },
                  .range = {-0.08, 0.08},
                  .ranges = {{"x", {-1, 1}}}});
  all->push_back({.name = "G14", .graph = [] { return AttentionGraph(64, 512, 32); }});
  all->push_back({.name = "G15",
                  .graph = [] { return EncoderLayerGraph(512, 256, 8, 2048); },
                  .range = {-0.08, 0.08},
                  .ranges = {{"x", {-1, 1}}, {"norm1_scale", {0.5, 1.5}}, {"norm2_scale", {0.5, 1.5}}}});
  all->push_back({.name = "G16", .graph = [] { return ConvolutionGraph(56, 32, 64, 8); }});
}

void AddTransforms(std::vector<Workload>* all) {
  all->push_back({.name = "G21_pad", .graph = [] { return PaddedOperandsGraph(kMillion); }});
  all->push_back({.name = "G21_spectrum", .graph = [] { return SpectrumProductGraph(kMillion + 1); }});
  all->push_back({.name = "G21_poisson", .graph = [] { return PoissonFactorGraph(1024); }, .range = {0.1, 4}});
  all->push_back(
      {.name = "G26", .graph = [] { return ConjugateGradientsGraph(256, 10); }, .ranges = {{"squared", {1, 2}}}});
  all->push_back({.name = "G22", .graph = [] { return CircuitGraph(20, 20); }, .range = {-0.5, 0.5}});
  all->push_back({.name = "G23_128", .graph = [] { return DmrgGraph(128, 5, 2); }});
  all->push_back({.name = "G23_256", .graph = [] { return DmrgGraph(256, 5, 2); }});
  constexpr struct {
    const char *labels, *sizes;
  } kContractions[] = {{"abcde-efbad-cf", "a24b16c24d16e24f16"},
                       {"abcd-dbea-ec", "a48b32c32d48e48"},
                       {"abcdef-dega-gfbc", "a24b12c12d24e12f12g24"},
                       {"ab-acd-dbc", "a120b100c100d120"},
                       {"abcd-aebf-dfce", "a48b32c32d48e32f32"}};
  for (const auto& contraction : kContractions) {
    all->push_back({.name = absl::StrCat("G25_", absl::StrReplaceAll(contraction.labels, {{"-", "_"}})),
                    .graph = [contraction] { return ContractionGraph(contraction.labels, contraction.sizes); }});
  }
}

void AddVectors(std::vector<Workload>* all) {
  using Build = Graph (*)(DType, int64_t);
  struct Kind {
    const char* name;
    std::vector<DType> dtypes;
    Build graph;
  };
  const std::vector<Kind> kinds = {
      {"abs", {DType::kC64, DType::kC128}, [](DType dtype, int64_t n) { return OneOpGraph(CoreOp::kAbs, dtype, n); }},
      {"argmax", {DType::kF32, DType::kF64, DType::kI32, DType::kI64}, &FirstMaximumGraph},
      {"quotient", {DType::kI32, DType::kI64}, [](DType dtype, int64_t n) { return FloorQuotientGraph(dtype, 7, n); }},
      {"remainder",
       {DType::kI32, DType::kI64},
       [](DType dtype, int64_t n) { return FloorRemainderGraph(dtype, 7, n); }},
      {"norm", {DType::kF32, DType::kF64}, &NormGraph}};
  const std::pair<const char*, int64_t> sizes[] = {{"1e4", 10'000}, {"1e6", 1'000'000}, {"1e7", 10'000'000}};
  for (const Kind& kind : kinds) {
    for (const DType dtype : kind.dtypes) {
      const bool is_whole = kIntegers.Contains(dtype);
      for (const auto& [size, n] : sizes) {
        all->push_back({.name = absl::StrCat("G27_", kind.name, "_", Name(dtype), "_", size),
                        .graph = [build = kind.graph, dtype, n = n] { return build(dtype, n); },
                        .range = is_whole ? Range{-1e9, 1e9} : Range{-4, 4}});
      }
    }
  }
}

void AddFamilies(std::vector<Workload>* all) {
  all->push_back({.name = "G17", .graph = [] { return GaussianProcessGraph(1024, 8); }});
  all->push_back({.name = "G18", .graph = [] { return TwoSiteUpdateGraph(128, 2); }});
  const auto matrices = [all](std::string name, const char* op, int64_t size, int64_t batch, int64_t right_sides,
                              DType dtype = DType::kF64) {
    Workload workload = {.name = std::move(name),
                         .graph = [=] { return MatrixOpGraph(op, size, batch, right_sides, dtype); }};
    const absl::string_view kind = op;
    if (kind == "lu") workload.range = {-0.126, 0.126};  // the determinant is near 1
    if (kind == "eigh" || kind == "cholesky" || kind == "solve") workload.definite = {"a"};
    all->push_back(std::move(workload));
  };
  for (const char* op : {"svd", "qr", "eigh", "cholesky", "solve"}) {
    for (const int64_t size : {4, 8, 16}) {
      matrices(absl::StrCat("G19_", op, "_", size), op, size, size == 16 ? 1024 : 4096, 1);
    }
  }
  matrices("G19_svd_8_1024", "svd", 8, 1024, 1);
  for (const char* op : {"svd", "qr", "eigh", "lu", "cholesky", "solve"}) {
    matrices(absl::StrCat("G20_", op), op, 512, 1, 16);
  }
  for (const char* op : {"svd", "eigh"}) matrices(absl::StrCat("G20_", op, "_complex"), op, 512, 1, 0, DType::kC128);
  all->push_back({.name = "G21_convolution", .graph = [] { return TransformedConvolutionGraph(kMillion); }});
  all->push_back({.name = "G21_poisson_solver",
                  .graph = [] { return PoissonSolverGraph(1024); },
                  .ranges = {{"along", {0.1, 4}}, {"across", {0.1, 4}}}});
}

void AddAlgebras(std::vector<Workload>* all) {
  for (const int64_t size : {256, 1024, 2048}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32}) {
      all->push_back({.name = absl::StrCat("G28_max_plus_", Name(dtype), "_", size),
                      .graph = [dtype, size] { return AlgebraProductGraph(Algebra::kMaxPlus, dtype, size); },
                      .range = {-1000, 1000}});
    }
    // In a hundred terms some are true: neither all of the result is, nor nothing.
    all->push_back({.name = absl::StrCat("G28_or_and_", size),
                    .graph = [size] { return AlgebraProductGraph(Algebra::kOrAnd, DType::kBool, size); },
                    .range = {0, 1.03}});
  }
  for (const int64_t nodes : {1024, 2048}) {
    all->push_back({.name = absl::StrCat("G29_paths_", nodes),
                    .graph = [nodes] { return ShortestPathsGraph(nodes); },
                    .range = {1, 1000}});
  }
  all->push_back({.name = "G29_spin_glass_12", .graph = [] { return SpinGlassGraph(12); }});
}

}  // namespace

std::vector<Workload> AllWorkloads() {
  std::vector<Workload> all;
  AddElementwise(&all);
  AddLayout(&all);
  AddProducts(&all);
  AddFamilies(&all);
  AddTransforms(&all);
  AddVectors(&all);
  AddAlgebras(&all);
  AddDerivatives(&all);
  return all;
}

absl::StatusOr<Workload> ReadNetwork(std::string name, const std::string& file) {
  std::ifstream stream(file);
  const auto read = [&stream](int64_t count) {
    std::vector<int64_t> numbers(static_cast<size_t>(count));
    for (int64_t& number : numbers) stream >> number;
    return numbers;
  };
  const auto read_rank = [&stream] {
    int64_t rank = 0;
    stream >> rank;
    return stream && rank >= 0 && rank <= kMaxRank ? rank : 0;
  };
  TensorNetwork network;
  int64_t count = 0;
  double mean = 0;
  stream >> count >> mean;
  for (int64_t i = 0; stream && i < count; ++i) {
    const int64_t rank = read_rank();
    network.operands.push_back(read(rank));
    network.shapes.push_back(read(rank));
  }
  network.output = read(read_rank());
  if (!stream || count < 1) return absl::InvalidArgumentError(absl::StrCat("no network: ", file));
  return Workload{.name = std::move(name),
                  .graph = [network = std::move(network)] { return EinsumGraph(network); },
                  .range = {0.5 * mean, 1.5 * mean}};
}

}  // namespace tensord
