#ifndef TENSORD_ENGINE_IR_LIVENESS_H_
#define TENSORD_ENGINE_IR_LIVENESS_H_

#include <vector>

#include "engine/ir/graph.h"

namespace tensord {

// Returns by node whether an output needs it, if only for a size.
std::vector<bool> LiveNodes(const Graph& graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_LIVENESS_H_
