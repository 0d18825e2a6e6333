#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_NODE_CASE_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_NODE_CASE_H_

#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/core_ops.h"

namespace tensord {

// One op with attributes on operands of given types: what the conformance suites run on every backend.
struct NodeCase {
  std::string name;
  const OpDef* op = nullptr;
  Attributes attrs;
  std::vector<ConcreteType> operands;
};

// The graph of the node alone: inputs x0, x1, …, node "n", output "y".
Graph GraphOf(const NodeCase& node_case);

// Cases of every core op on every dtype it takes: sizes 0, 1, odd and large, ranks 0 to 8, attributes at their edges.
std::vector<NodeCase> CoreOpCases();

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_NODE_CASE_H_
