#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_MIXED_GRAPH_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_MIXED_GRAPH_H_

#include "engine/ir/graph.h"

namespace tensord {

struct MixedGraphOptions {
  int nodes = 100;
  // The number of rows is the symbol n.
  bool symbolic = false;
};

// A graph of exactly so many nodes, of one mixture whatever their number: blocks of dots, a bias, a softmax,
// transposes, reshapes, elementwise chains and constants, each reading the block before and an older one. No two nodes
// compute the same, and none is dead. f32; valid for the wire.
Graph MixedGraph(const MixedGraphOptions& options);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_MIXED_GRAPH_H_
