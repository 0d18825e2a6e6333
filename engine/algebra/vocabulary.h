#ifndef TENSORD_ENGINE_ALGEBRA_VOCABULARY_H_
#define TENSORD_ENGINE_ALGEBRA_VOCABULARY_H_

#include "absl/status/status.h"
#include "engine/ir/graph.h"

namespace tensord {

// The part that an op of a graph in another algebra has in it.
enum class AlgebraPart {
  kMoves,     // it moves elements, of any dtype, or tells sizes
  kCombines,  // it adds or multiplies in the algebra, or fills with its zero
  kNone,      // the algebra has no such op
};
AlgebraPart AlgebraPartOf(const Node& node);

// Refuses a graph with an op outside of its algebra, or with elements that are none of it where they are combined or
// filled up. The graph has types. OP_OUTSIDE_ALGEBRA or DTYPE_UNSUPPORTED, which name the first such node, dead or not.
absl::Status CheckVocabulary(const Graph& graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_ALGEBRA_VOCABULARY_H_
