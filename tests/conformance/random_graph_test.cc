// Random graphs, compiled under every setting of the compiler, against the reference evaluator: integer graphs bit for
// bit.

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/ir/verifier.h"
#include "engine/passes/pass.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/compiled_run.h"
#include "tests/testlib/hidden_memory_backend.h"
#include "tests/testlib/literal_compare.h"
#include "tests/testlib/random_literal.h"
#include "tests/testlib/valid_graph.h"

namespace tensord {
namespace {

// Arguments for the graph's inputs, with random sizes for its symbols.
std::vector<Literal> RandomArguments(const Graph& graph, Values values, std::mt19937_64* random) {
  absl::flat_hash_map<std::string, int64_t> sizes;
  std::vector<Literal> arguments;
  for (const GraphInput& input : graph.inputs()) {
    ConcreteType type{.dtype = input.type.dtype};
    for (const Dim& dim : input.type.shape) {
      const auto symbol = dim.size.as_symbol();
      type.shape.push_back(
          symbol.has_value()
              ? sizes.try_emplace(std::string(*symbol), static_cast<int64_t>((*random)() % 8)).first->second
              : dim.size.constant());
    }
    arguments.push_back(RandomLiteral(type, values, random));
  }
  return arguments;
}

class RandomGraphs : public testing::Test {
 protected:
  void Check(const ValidGraphOptions& options, Values values, int graphs, const Tolerance& tolerance) {
    const std::unique_ptr<Backend> cpu = MakeCpuBackend({.threads = 2});
    HiddenMemoryBackend hidden;
    std::vector<CompiledRunOptions> settings = {
        {.backend = cpu.get()}, {.backend = cpu.get(), .row_major = true}, {.backend = &hidden, .row_major = true}};
    std::vector<std::string> all_passes;
    for (const Pass& pass : Pipeline()) {
      all_passes.push_back(std::string(pass.name));
      settings.push_back({.backend = cpu.get(), .row_major = true, .disabled_passes = {std::string(pass.name)}});
    }
    settings.push_back({.backend = cpu.get(), .disabled_passes = all_passes});
    for (int seed = 0; seed < graphs; ++seed) {
      std::mt19937_64 random(static_cast<uint64_t>(seed));
      const Graph graph = RandomValidGraph(options, &random);
      const std::vector<Literal> arguments = RandomArguments(graph, values, &random);
      Graph typed = graph;
      const auto guards = InferTypes(&typed);
      ASSERT_TRUE(guards.ok()) << "seed " << seed << ": " << guards.status();
      const auto want = EvaluateReference(typed, *guards, arguments);
      ASSERT_TRUE(want.ok()) << "seed " << seed << ": " << want.status();
      for (size_t s = 0; s < settings.size(); ++s) {
        const auto got = CompileAndRun(graph, settings[s], arguments);
        ASSERT_TRUE(got.ok()) << "seed " << seed << " setting " << s << ": " << got.status();
        for (size_t i = 0; i < want->size(); ++i) {
          EXPECT_EQ(Difference((*got)[i], (*want)[i], tolerance), "")
              << "seed " << seed << " setting " << s << " output " << i;
        }
      }
      if (HasFailure()) return;
    }
  }
};

TEST_F(RandomGraphs, IntegersAgreeBitForBit) { Check({.max_nodes = 25}, Values::kModest, 1500, {}); }

TEST_F(RandomGraphs, SymbolicSizesAgreeBitForBit) {
  Check({.max_nodes = 20, .symbols = true}, Values::kModest, 1500, {});
}

TEST_F(RandomGraphs, FloatsAgreeUpToRounding) {
  Check({.max_nodes = 8, .exact = false}, Values::kIntegers, 800, {.ulps = 16, .norm_relative = 1e-5});
}

}  // namespace
}  // namespace tensord
