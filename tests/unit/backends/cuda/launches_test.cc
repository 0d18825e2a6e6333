// How many kernels the graphs of the benchmarks take, at a few hundredths of their size, and their results beside the
// CPU's.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "engine/ir/verifier.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

// Kernels of ours, and calls of libraries that compute.
struct Launches {
  long kernels, calls;
};

// A change that needs more of them is none for the better; one that needs fewer says so here.
const std::map<std::string, Launches>& Bounds() {
  static const auto* const bounds = new std::map<std::string, Launches>{
      {"G01 elementwise chain", {1, 0}},
      {"G01 GELU", {1, 0}},
      {"G02 equation of state", {1, 0}},
      {"G03 AdamW", {1, 0}},
      {"G04 softmax", {1, 0}},
      {"G05 LayerNorm", {1, 0}},
      {"G06 five reductions", {6, 0}},
      {"G07 transpose 2-D", {1, 0}},
      {"G07 transpose 3-D", {1, 0}},
      {"G07 transpose 15-D reversed", {1, 0}},
      {"G08 diffusion", {1, 0}},
      {"G09 embedding", {6, 0}},
      {"G10 KV cache step", {6, 2}},
      {"G11 product", {0, 1}},
      {"G12 batched product", {0, 1}},
      {"G13 MLP", {3, 3}},
      {"G13 wide layer", {1, 1}},
      {"G14 attention", {1, 2}},
      {"G15 encoder layer", {15, 8}},
      {"G16 convolution", {1, 0}},
      {"G17 Gaussian process", {11, 1}},
      {"G18 two-site update", {5, 2}},
      {"G19 SVD 8x8", {1, 0}},
      {"G19 solve 16x16", {6, 0}},
      {"G20 SVD", {1, 0}},
      {"G20 QR", {1, 0}},
      {"G20 eigenvectors", {1, 0}},
      {"G20 determinant", {10, 0}},
      {"G20 Cholesky", {3, 0}},
      {"G20 solve", {6, 0}},
      {"G21 padding", {3, 0}},
      {"G21 spectra", {1, 0}},
      {"G21 Poisson factor", {1, 0}},
      {"G21 convolution", {6, 3}},
      {"G21 Poisson solver", {6, 4}},
      {"G26 conjugate gradients", {20, 0}},
      {"G22 circuit", {35, 20}},
      {"G23 DMRG", {5, 4}},
      {"G24a matrix chain", {0, 99}},
      {"G24b MPS inner product", {0, 399}},
  };
  return *bounds;
}

class LaunchesTest : public BesideCpuTest {
 protected:
  Launches Now() {
    long calls = 0;
    for (const char* function :
         {"cublasLtMatmul", "cublasStrsm_v2_64", "cublasDtrsm_v2_64", "cublasCtrsm_v2_64", "cublasZtrsm_v2_64",
          "cufftXtExec", "cusolverDnXpotrf", "cusolverDnXgetrf", "cusolverDnXgetrs", "cusolverDnXgeqrf",
          "cusolverDnXsyevd", "cusolverDnXsyevBatched", "cusolverDnXgesvd", "cusolverDnXgeev", "cusolverDnSorgqr",
          "cusolverDnDorgqr", "cusolverDnCungqr", "cusolverDnZungqr"}) {
      calls += hostCudaCalls(function);
    }
    return {hostCudaCalls("cuLaunchKernel"), calls};
  }
};

TEST_F(LaunchesTest, OfTheGraphsOfTheBenchmarks) {
  constexpr double kSize = 0.02;
  const std::unique_ptr<Backend> backend = Made();
  for (const BenchGraph& bench : AllBenchGraphs()) {
    if (absl::StartsWith(bench.name, "G25")) continue;  // of one size, a product each
    SCOPED_TRACE(bench.name);
    const tensord::Graph graph = bench.build(kSize);
    tensord::Graph typed = graph;
    ASSERT_TRUE(InferTypes(&typed).ok());
    std::vector<Literal> arguments;
    for (const GraphInput& input : typed.inputs()) {
      arguments.push_back(RandomLiteral(ToConcreteType(input.type), Values::kModest, &random_));
    }
    const auto want = CompileAndRun(graph, {.backend = cpu_.get()}, arguments);
    const Launches before = Now();
    const auto got = CompileAndRun(graph, {.backend = backend.get()}, arguments);
    const Launches after = Now(), launches = {after.kernels - before.kernels, after.calls - before.calls};
    ASSERT_EQ(got.ok(), want.ok()) << got.status() << want.status();
    // Vectors of decompositions have either sign; linalg_test has their properties.
    const bool is_of_vectors = absl::StrContains(bench.name, "SVD") || absl::StrContains(bench.name, "QR") ||
                               absl::StrContains(bench.name, "vectors") || absl::StrContains(bench.name, "two-site");
    if (want.ok() && !is_of_vectors) {
      ASSERT_EQ(got->size(), want->size());
      for (size_t i = 0; i < got->size(); ++i) {
        EXPECT_EQ(Difference((*got)[i], (*want)[i], {.norm_relative = 1e-3}), "") << "output " << i;
      }
    }
    EXPECT_EQ(ReasonOf(got.status()), ReasonOf(want.status()));
    std::cout << absl::StrFormat("{\"%s\", {%d, %d}},\n", bench.name, launches.kernels, launches.calls);
    const auto bound = Bounds().find(bench.name);
    if (bound == Bounds().end()) {
      ADD_FAILURE() << "a graph without a bound";
      continue;
    }
    EXPECT_LE(launches.kernels, bound->second.kernels);
    EXPECT_LE(launches.calls, bound->second.calls);
  }
}

}  // namespace
}  // namespace tensord::cuda
