#ifndef TENSORD_ENGINE_PASSES_REWRITING_ELEMENTWISE_H_
#define TENSORD_ENGINE_PASSES_REWRITING_ELEMENTWISE_H_

#include "engine/ir/graph.h"

namespace tensord {

// Tells whether the node computes each element of its one result from those elements of its operands.
bool IsElementwise(const Node& node);

// Tells whether the op takes an instruction or two an element, as sums and selections do and functions do not: what
// passes compute again rather than store.
bool IsCheap(const OpDef& op);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_REWRITING_ELEMENTWISE_H_
