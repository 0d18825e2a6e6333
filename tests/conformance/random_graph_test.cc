// Random graphs over the whole vocabulary, compiled under every setting of the compiler, against the reference
// evaluator: within the bounds of tests/testlib/property/reference_bounds.h. What the wire adds is tested in
// tests/e2e/property, with many more graphs.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "engine/exec/pipeline.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "tests/testlib/compiled_run.h"
#include "tests/testlib/hidden_memory_backend.h"
#include "tests/testlib/property/random_case.h"
#include "tests/testlib/property/reference_bounds.h"

namespace tensord {
namespace {

TEST(RandomGraphs, AgreeUnderEverySetting) {
  const std::unique_ptr<Backend> cpu = MakeCpuBackend({.threads = 2});
  HiddenMemoryBackend hidden;
  std::vector<CompiledRunOptions> settings = {
      {.backend = cpu.get()}, {.backend = cpu.get(), .row_major = true}, {.backend = &hidden, .row_major = true}};
  const std::vector<std::string> all_passes = PassNames();
  for (const std::string& pass : all_passes) {
    settings.push_back({.backend = cpu.get(), .row_major = true, .disabled_passes = {pass}});
  }
  settings.push_back({.backend = cpu.get(), .disabled_passes = all_passes});
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    const property::RandomCase random_case = property::MakeRandomCase({.max_nodes = 40, .size_choices = 2}, seed);
    Graph typed = random_case.graph;
    const auto guards = InferTypes(&typed);
    ASSERT_TRUE(guards.ok()) << "seed " << seed << ": " << guards.status();
    for (const std::vector<Literal>& arguments : random_case.arguments) {
      const auto want = property::EvaluateBounded(typed, *guards, arguments);
      ASSERT_TRUE(want.ok()) << "seed " << seed << ": " << want.status();
      for (size_t s = 0; s < settings.size(); ++s) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " setting " << s);
        const auto got = CompileAndRun(random_case.graph, settings[s], arguments);
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_EQ(got->size(), want->size());
        for (size_t i = 0; i < want->size(); ++i) {
          EXPECT_EQ(property::DifferenceFrom((*got)[i], (*want)[i]), "") << "output " << i;
        }
        ASSERT_FALSE(HasFailure()) << PrintGraph(typed);
      }
    }
  }
  EXPECT_EQ(hidden.live_buffers(), 0);
}

}  // namespace
}  // namespace tensord
