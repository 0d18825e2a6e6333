#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_RANDOM_REDUCTIONS_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_RANDOM_REDUCTIONS_H_

#include <cstdint>

#include "engine/ir/graph.h"

namespace tensord {

// A graph of maps, reductions and broadcasts, floats of one dtype: steps that draw their operands at random, or a few
// steps that are repeated as an iteration's are. The seed decides the graph and the sizes' proportions; its tensors
// have about `elements` elements. Values stay near 1 whatever the length of the graph is.
Graph RandomReductionGraph(uint64_t seed, int64_t elements);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_RANDOM_REDUCTIONS_H_
