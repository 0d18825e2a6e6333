// The wire's messages as Protocol Buffers, for programs that make graphs by hand, or that look at answers of
// Client::Compile, GetProgram, GetServerInfo and PlanContractions. The other headers only name them, since a file that
// includes them takes longer to compile.
#ifndef TENSORD_MESSAGES_H_
#define TENSORD_MESSAGES_H_

#include <vector>

#include "tensord/host_tensor.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/graph.pb.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::client {

// A graph and the values of its inputs behind the parameters, in their order. Made by Trace (evaluation.h).
struct TracedGraph {
  v1::Graph graph;
  std::vector<HostTensor> arguments;
};

// The two passes of a derivative. The forward one has the graph's inputs, and its outputs with residuals behind them.
// The backward one has the inputs of the graph that it reads or that have symbolic sizes, the residuals under the names
// of those outputs, and the cotangents of kVjp; its outputs are the cotangents of each wrt.
struct SplitDerivative {
  v1::Graph forward;
  v1::Graph backward;
};

}  // namespace tensord::client

#endif  // TENSORD_MESSAGES_H_
