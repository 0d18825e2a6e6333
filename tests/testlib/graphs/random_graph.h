#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_RANDOM_GRAPH_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_RANDOM_GRAPH_H_

#include <random>

#include "engine/ir/graph.h"
#include "engine/ir/op_registry.h"

namespace tensord {

// A graph over the registry's ops with any values for the attributes that their schemas have, for what copies graphs
// and does not look at types: such a graph is well-formed, and seldom one that InferTypes accepts. Names are odd, and
// allowed.
Graph RandomGraph(const OpRegistry& registry, std::mt19937_64* random);

// A size expression over the symbols n and m, and operand axes where they are allowed. Never negative constants alone.
DimExpr RandomDimExpr(std::mt19937_64* random, bool operand_axes);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_RANDOM_GRAPH_H_
