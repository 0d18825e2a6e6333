#include "engine/passes/pipeline.h"

#include <map>
#include <random>

#include "engine/ir/canonical.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/passes/algebra/eliminate_dead_code.h"
#include "engine/passes/layout/reverse_wire_order.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/graphs/valid_graph.h"

namespace tensord {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Pipeline, EveryPassLeavesItsOwnResultAsItIs) {
  std::mt19937_64 random(5);
  std::map<std::string, int> changed;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    Graph graph = RandomValidGraph({.max_nodes = 30, .symbols = i % 2 == 0, .exact = false}, &random);
    const bool row_major = i % 3 == 0;
    if (row_major) graph = ReverseWireOrder(graph);
    bool is_stored_in_order = !row_major;
    for (const Pass& pass : GraphPasses()) {
      const bool reverses = !is_stored_in_order;
      const auto first = pass.run(&graph, {.row_major = reverses});
      ASSERT_TRUE(first.ok()) << first.status();
      changed[std::string(pass.name)] += *first;
      // The rest is in the order in which it is stored: from here on it is as good as column-major.
      is_stored_in_order = is_stored_in_order || pass.name == "fold_transposes";
      ASSERT_TRUE(EliminateDeadCode(&graph, {}).ok());
      ASSERT_TRUE(VerifyTypes(graph).ok()) << pass.name << VerifyTypes(graph) << PrintGraph(graph);
      const std::string before = PrintGraph(graph);
      const auto second = pass.run(&graph, {.row_major = !is_stored_in_order});
      ASSERT_TRUE(second.ok()) << second.status();
      EXPECT_FALSE(*second) << pass.name << "\n" << before << PrintGraph(graph);
    }
  }
  EXPECT_GT(changed["fold_transposes"], 50);
  EXPECT_GT(changed["simplify_layout"], 50);
  EXPECT_GT(changed["simplify_algebra"], 20);
  EXPECT_GT(changed["eliminate_common_subexpressions"], 10);
}

TEST(Pipeline, SaysWhatChanged) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 200; ++i) {
    Graph graph = RandomValidGraph({.max_nodes = 12, .symbols = true}, &random);
    for (const Pass& pass : GraphPasses()) {
      const std::string before = CanonicalBytes(graph);
      const auto changed = pass.run(&graph, {});
      ASSERT_TRUE(changed.ok()) << changed.status();
      EXPECT_EQ(*changed, CanonicalBytes(graph) != before) << pass.name << "\n" << PrintGraph(graph);
    }
  }
}

TEST(Pipeline, TransposesThatNothingAbsorbsAreNoChange) {
  Graph graph = TypedGraph(R"(graph "g" {
    %x = input : f32[2,3]
    %t = transpose(%x) {permutation = [1, 0]}
    %y = reshape(%t) {shape = [6]}
    output "y" = %y
    output "t" = %t
  })");
  const std::string before = PrintGraph(graph);
  const auto changed = RunPipeline(&graph, {});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_THAT(FiredPasses(*changed), IsEmpty());
  EXPECT_EQ(PrintGraph(graph), before);  // with the client's names
}

TEST(Pipeline, RunsWhatIsNotDisabled) {
  constexpr absl::string_view kText = R"(graph "g" {
    %x = input : f32[2,3]
    %a = transpose(%x) {permutation = [1, 0]}
    %dead = sin(%a)
    %e = exp(%a)
    output "y" = %e
  })";
  const std::vector<std::string> dce = {"eliminate_dead_code"}, transposes = {"fold_transposes"};
  Graph graph = TypedGraph(kText);
  EXPECT_THAT(FiredPasses(*RunPipeline(&graph, {})), ElementsAre("eliminate_dead_code", "fold_transposes"));
  graph = TypedGraph(kText);
  EXPECT_THAT(FiredPasses(*RunPipeline(&graph, {}, {.disabled = dce})), ElementsAre("fold_transposes"));
  EXPECT_THAT(PrintGraph(graph), HasSubstr("%dead = sin(%x)"));
  graph = TypedGraph(kText);
  EXPECT_THAT(FiredPasses(*RunPipeline(&graph, {}, {.disabled = transposes})), ElementsAre("eliminate_dead_code"));
  EXPECT_THAT(PrintGraph(graph), HasSubstr("%e = exp(%a)"));
}

TEST(ReverseWireOrder, ReversesWhatHasTwoAxesOrMore) {
  const Graph graph = ReverseWireOrder(TypedGraph(R"(graph "g" {
    %s = input : f32[]
    %v = input : f32[n]
    %x = input : f32[2,n,4]
    %y = exp(%x)
    output "s" = %s
    output "v" = %v
    output "y" = %y
  })"));
  ASSERT_TRUE(VerifyTypes(graph).ok());
  std::vector<std::string> inputs, outputs;
  for (const GraphInput& input : graph.inputs()) inputs.push_back(ToString(input.type));
  for (const GraphOutput& output : graph.outputs()) outputs.push_back(ToString(graph.type(output.value)));
  EXPECT_THAT(inputs, ElementsAre("f32[]", "f32[n]", "f32[4,n,2]"));
  EXPECT_THAT(outputs, ElementsAre("f32[]", "f32[n]", "f32[4,n,2]"));
  EXPECT_EQ(graph.nodes().size(), 3u);
}

}  // namespace
}  // namespace tensord
