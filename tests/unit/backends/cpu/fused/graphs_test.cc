// Graphs of maps, reductions and broadcasts with the pass `fuse` and without it: the same values, but for the order of
// sums.

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/random_reductions.h"
#include "tests/testlib/runs/chained_run.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

double Element(const Literal& literal, size_t i) {
  return literal.dtype() == DType::kF32 ? static_cast<double>(literal.values<float>()[i]) : literal.values<double>()[i];
}

TEST(FusedGraphsTest, FusionChangesNoMoreThanTheOrderOfSums) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 2});
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const int64_t elements = seed % 3 == 0 ? 64 : seed % 3 == 1 ? 3000 : 60000;
    const Graph graph = RandomReductionGraph(seed, elements);
    std::mt19937_64 random(seed);
    const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
    const auto fused = CompileAndRun(graph, {.backend = backend.get()}, arguments);
    const auto apart = CompileAndRun(graph, {.backend = backend.get(), .disabled_passes = {"fuse"}}, arguments);
    ASSERT_TRUE(fused.ok()) << fused.status();
    ASSERT_TRUE(apart.ok()) << apart.status();
    ASSERT_EQ(fused->size(), apart->size());
    for (size_t r = 0; r < fused->size(); ++r) {
      const Literal& got = (*fused)[r];
      const double tolerance = got.dtype() == DType::kF32 ? 2e-3 : 1e-7;
      for (size_t i = 0; i < static_cast<size_t>(got.num_elements()); ++i) {
        const double a = Element(got, i), b = Element((*apart)[r], i);
        ASSERT_LE(std::abs(a - b), tolerance * (1 + std::abs(b))) << "seed " << seed << ", result " << r << ", " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tensord
