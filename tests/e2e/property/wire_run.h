#ifndef TENSORD_TESTS_E2E_PROPERTY_WIRE_RUN_H_
#define TENSORD_TESTS_E2E_PROPERTY_WIRE_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/tensor/literal.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord::property {

// How a client runs a graph.
struct WireOptions {
  bool row_major_program = false;  // CompileOptions.order; results come in it
  bool row_major_arguments = false;
  bool by_fingerprint = false;  // Compile, then Execute by fingerprint; else the graph goes with every call
  std::vector<std::string> disabled_passes = {};
};

std::string ToString(const WireOptions& options);

// Sends a graph to a server and runs it on each set of arguments, one call after the other; returns the results, by set
// of arguments. INTERNAL if any call but the first says that it compiled: one program serves every size. A refusal of
// the server is returned as it is.
absl::StatusOr<std::vector<std::vector<Literal>>> RunThroughWire(v1::Compute::Stub& stub, const Graph& graph,
                                                                 const std::vector<std::vector<Literal>>& arguments,
                                                                 const WireOptions& options);

}  // namespace tensord::property

#endif  // TENSORD_TESTS_E2E_PROPERTY_WIRE_RUN_H_
