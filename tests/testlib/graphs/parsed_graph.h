#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_PARSED_GRAPH_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_PARSED_GRAPH_H_

#include <utility>

#include "absl/strings/string_view.h"
#include "engine/families/all_families.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"

namespace tensord {

// The graph of a text in the core vocabulary; a text that is none fails the test and gives an empty graph.
inline Graph ParsedGraph(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, FamilyRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return graph.ok() ? *std::move(graph) : Graph();
}

// The same with its types.
inline Graph TypedGraph(absl::string_view text) {
  Graph graph = ParsedGraph(text);
  const absl::Status inferred = InferTypes(&graph).status();
  EXPECT_TRUE(inferred.ok()) << inferred << "\n" << text;
  return graph;
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_PARSED_GRAPH_H_
