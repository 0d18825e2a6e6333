#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_MUTATED_NODE_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_MUTATED_NODE_H_

#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/ir/graph.h"
#include "tests/testlib/graphs/node_case.h"

namespace tensord {

// A graph of one node that was valid once, on inputs, transposed inputs and constants; and sizes for its symbols.
struct MutatedNode {
  Graph graph;  // without types; and refusals are of the node "n" alone
  absl::flat_hash_map<std::string, int64_t> sizes;
};

// Makes sizes of the case's operands symbols at random, then changes operands and attributes in one to three places:
// dtypes, ranks, sizes, counts, axes, enumerators, lists, size expressions. The result is often wrong, and often valid
// in a way that nobody thought of.
MutatedNode MutateNode(const NodeCase& node_case, std::mt19937_64* random);

// Returns the argument types that the inputs' types ask for under these sizes.
std::vector<ConcreteType> ArgumentTypes(const MutatedNode& node);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_MUTATED_NODE_H_
