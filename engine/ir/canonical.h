#ifndef TENSORD_ENGINE_IR_CANONICAL_H_
#define TENSORD_ENGINE_IR_CANONICAL_H_

#include <string>

#include "engine/ir/graph.h"

namespace tensord {

// Returns the computation of a graph as bytes. Two graphs have the same bytes exactly if they have the same algebra,
// inputs of the same types, nodes of the same ops, attributes and operands, and outputs of the same names and values,
// each in the same order. The names of the graph, of its inputs and of its nodes are left out; symbols are in. Needs no
// inferred types.
std::string CanonicalBytes(const Graph& graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_CANONICAL_H_
