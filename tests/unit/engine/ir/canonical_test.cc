#include "engine/ir/canonical.h"

#include <map>
#include <random>

#include "engine/families/all_families.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/graphs/random_graph.h"

namespace tensord {
namespace {

// The graph with other names of everything that has no meaning.
Graph Renamed(const Graph& graph) {
  Graph renamed;
  renamed.set_name("renamed");
  renamed.set_algebra(graph.algebra());
  for (const GraphInput& input : graph.inputs()) renamed.AddInput("in." + input.name, input.type);
  for (Node node : graph.nodes()) {
    node.name = "node." + node.name;
    renamed.AddNode(std::move(node));
  }
  for (const GraphOutput& output : graph.outputs()) renamed.AddOutput(output.name, output.value);
  return renamed;
}

TEST(CanonicalTest, NamesAreNoPartOfIt) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const Graph graph = RandomGraph(FamilyRegistry(), &random);
    EXPECT_EQ(CanonicalBytes(Renamed(graph)), CanonicalBytes(graph));
  }
}

TEST(CanonicalTest, DifferentGraphsHaveDifferentBytes) {
  std::mt19937_64 random(2);
  std::map<std::string, std::string> seen;  // by canonical bytes: the text under standard names
  for (int i = 0; i < 5'000; ++i) {
    const Graph graph = RandomGraph(FamilyRegistry(), &random);
    Graph standard;
    standard.set_algebra(graph.algebra());
    for (const GraphInput& input : graph.inputs()) standard.AddInput(std::to_string(standard.num_values()), input.type);
    for (Node node : graph.nodes()) {
      node.name = std::to_string(standard.num_values());
      standard.AddNode(std::move(node));
    }
    for (const GraphOutput& output : graph.outputs()) standard.AddOutput(output.name, output.value);
    const auto [it, is_new] = seen.emplace(CanonicalBytes(graph), PrintGraph(standard));
    if (!is_new) {
      EXPECT_EQ(it->second, PrintGraph(standard));
    }
  }
  EXPECT_GT(seen.size(), 4'000u);
}

TEST(CanonicalTest, OrderCounts) {
  const char* const kGraph = R"(graph "g" {
    %a = input : f32[2]
    %b = input : f32[2]
    %c = subtract(%a, %b)
    output "x" = %a
    output "y" = %c
  })";
  const std::string bytes = CanonicalBytes(ParsedGraph(kGraph));
  EXPECT_NE(bytes, CanonicalBytes(ParsedGraph(R"(graph "g" {
    %a = input : f32[2]
    %b = input : f32[2]
    %c = subtract(%b, %a)
    output "x" = %a
    output "y" = %c
  })")));
  EXPECT_NE(bytes, CanonicalBytes(ParsedGraph(R"(graph "g" {
    %a = input : f32[2]
    %b = input : f32[2]
    %c = subtract(%a, %b)
    output "y" = %c
    output "x" = %a
  })")));
}

TEST(CanonicalTest, InferenceDoesNotChangeIt) {
  Graph graph = ParsedGraph("graph \"g\" {\n  %x = input : f32[n]\n  %y = negate(%x)\n  output \"y\" = %y\n}");
  const std::string bytes = CanonicalBytes(graph);
  ASSERT_TRUE(InferTypes(&graph).ok());
  EXPECT_EQ(CanonicalBytes(graph), bytes);
}

TEST(CanonicalTest, EqualSizesAreOne) {
  EXPECT_EQ(CanonicalBytes(ParsedGraph("graph \"g\" {\n  %x = input : f32[n]\n  %i = iota() {type = i32[n + n]}\n}")),
            CanonicalBytes(ParsedGraph("graph \"g\" {\n  %x = input : f32[n]\n  %i = iota() {type = i32[2*n]}\n}")));
}

}  // namespace
}  // namespace tensord
