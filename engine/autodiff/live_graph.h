#ifndef TENSORD_ENGINE_AUTODIFF_LIVE_GRAPH_H_
#define TENSORD_ENGINE_AUTODIFF_LIVE_GRAPH_H_

#include "engine/ir/graph.h"

namespace tensord {

// Returns the graph without the nodes that no output reads. All inputs stay.
Graph LiveGraph(Graph graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_AUTODIFF_LIVE_GRAPH_H_
