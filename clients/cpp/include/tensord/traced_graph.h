#ifndef TENSORD_TRACED_GRAPH_H_
#define TENSORD_TRACED_GRAPH_H_

#include <vector>

#include "tensord/host_tensor.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {

// A graph and the values of its inputs behind the parameters, in their order. Made by Trace (evaluation.h).
struct TracedGraph {
  v1::Graph graph;
  std::vector<HostTensor> arguments;
};

}  // namespace tensord::client

#endif  // TENSORD_TRACED_GRAPH_H_
