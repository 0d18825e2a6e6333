#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_VALID_GRAPH_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_VALID_GRAPH_H_

#include <random>

#include "engine/ir/graph.h"

namespace tensord {

struct ValidGraphOptions {
  int max_nodes = 20;
  bool symbols = false;  // also sizes that are the symbols n and m
  bool exact = true;     // integers only, so that results are exact whatever the order of evaluation
};

// A graph that InferTypes accepts (types are set), over the structural, elementwise, reducing and contracting ops, with
// many transposes, several outputs and values that are used more than once.
Graph RandomValidGraph(const ValidGraphOptions& options, std::mt19937_64* random);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_VALID_GRAPH_H_
