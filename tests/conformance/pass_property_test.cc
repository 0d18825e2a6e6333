// Random graphs with each pass left out, and with each pass that is off by default: the same bits as the reference
// evaluator on graphs of integers and BOOL, within the bounds of tests/testlib/property/reference_bounds.h on all
// others.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/exec/program/program_passes.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/passes/pipeline.h"
#include "engine/reference/evaluator.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/graphs/valid_graph.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/property/random_case.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

using Wanted = std::vector<std::vector<property::BoundedLiteral>>;  // by set of arguments

// Returns the fault of a graph that a pass made of another one; empty if it computes the wanted values.
std::string Mistake(const Graph& rewritten, const property::RandomCase& random_case, const Wanted& wanted) {
  const absl::Status verified = VerifyTypes(rewritten);
  if (!verified.ok()) return verified.ToString();
  for (size_t set = 0; set < wanted.size(); ++set) {
    // Its guards were decided on the graph as it was.
    const auto got = EvaluateReference(rewritten, {}, random_case.arguments[set]);
    if (!got.ok()) return got.status().ToString();
    for (size_t i = 0; i < got->size(); ++i) {
      const std::string difference = property::DifferenceFrom((*got)[i], wanted[set][i]);
      if (!difference.empty()) return absl::StrCat("arguments ", set, ", output ", i, ": ", difference);
    }
  }
  return "";
}

// Both sides are evaluated by the reference, so that only the pass can cause a difference.
TEST(PassProperty, EachPassAloneKeepsWhatAGraphComputes) {
  std::map<std::string, int> changed;
  for (uint64_t seed = 0; seed < 8000; ++seed) {
    const property::RandomCase random_case = property::MakeRandomCase({.max_nodes = 30, .size_choices = 2}, seed);
    Graph typed = random_case.graph;
    const auto guards = InferTypes(&typed);
    ASSERT_TRUE(guards.ok()) << guards.status();
    Wanted wanted;
    for (const std::vector<Literal>& arguments : random_case.arguments) {
      auto results = property::EvaluateBounded(typed, *guards, arguments);
      ASSERT_TRUE(results.ok()) << results.status();
      wanted.push_back(*std::move(results));
    }
    for (const Pass& pass : GraphPasses()) {
      if (pass.name == "fuse") continue;  // the reference evaluator does not look into bodies
      Graph rewritten = typed;
      const auto fired = pass.run(&rewritten, {.row_major = seed % 2 == 0, .fuses = seed % 4 < 2});
      ASSERT_TRUE(fired.ok()) << fired.status();
      if (!*fired) continue;
      ++changed[std::string(pass.name)];
      ASSERT_EQ(Mistake(rewritten, random_case, wanted), "") << "seed " << seed << ", pass " << pass.name << "\n"
                                                             << PrintGraph(typed);
    }
  }
  for (const Pass& pass : GraphPasses()) {
    if (pass.name == "fuse") continue;
    EXPECT_GT(changed[std::string(pass.name)], 0) << pass.name << " changed nothing in any graph";
  }
}

class PassesOfIntegers : public testing::TestWithParam<BackendUnderTest> {};

INSTANTIATE_TEST_SUITE_P(Backends, PassesOfIntegers, testing::ValuesIn(kCpuAndCuda), NameOfBackend());

TEST_P(PassesOfIntegers, KeepTheirBits) {
  const std::unique_ptr<Backend> backend = GetParam().make();
  std::vector<CompiledRunOptions> settings = {{.backend = backend.get()}};
  for (const std::string& pass : PassNames()) {
    settings.push_back({.backend = backend.get(), .disabled_passes = {pass}});
  }
  for (const Pass& pass : GraphPasses()) {
    if (!pass.on_by_default) {
      settings.push_back({.backend = backend.get(), .row_major = true, .enabled_passes = {std::string(pass.name)}});
    }
  }
  std::mt19937_64 random(31);
  const int graphs = GetParam().compiles ? 60 : 2000;
  for (int i = 0; i < graphs; ++i) {
    const Graph typed = RandomValidGraph({.max_nodes = 30}, &random);
    std::vector<Literal> arguments;
    for (const GraphInput& input : typed.inputs()) {
      arguments.push_back(RandomLiteral(ToConcreteType(input.type), Values::kIntegers, &random));
    }
    const auto want = EvaluateReference(typed, {}, arguments);
    ASSERT_TRUE(want.ok()) << want.status();
    for (size_t s = 0; s < settings.size(); ++s) {
      const auto got = CompileAndRun(typed, settings[s], arguments);
      ASSERT_TRUE(got.ok()) << got.status() << PrintGraph(typed);
      for (size_t k = 0; k < want->size(); ++k) {
        ASSERT_EQ((*got)[k].bytes(), (*want)[k].bytes()) << "graph " << i << " setting " << s << PrintGraph(typed);
      }
    }
  }
}

}  // namespace
}  // namespace tensord
