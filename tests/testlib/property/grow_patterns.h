#ifndef TENSORD_TESTS_TESTLIB_PROPERTY_GROW_PATTERNS_H_
#define TENSORD_TESTS_TESTLIB_PROPERTY_GROW_PATTERNS_H_

#include "tests/testlib/property/growing_graph.h"

namespace tensord::property {

// Appends one of the shapes of graph that the compiler looks for, some ten nodes: chains of elementwise ops, masks,
// softmax and its relatives, contractions between transposes, what can be folded or is computed twice. Ends early where
// something does not fit.
void GrowPattern(GrowingGraph& graph);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_TESTLIB_PROPERTY_GROW_PATTERNS_H_
