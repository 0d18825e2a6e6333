#ifndef TENSORD_CLIENTS_CPP_CONNECTION_ROUTING_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_ROUTING_H_

#include <string>

#include "tensord/v1/compute.pb.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {

// The metadata by which a balancer sends calls that belong together to one server: docs/operate/balancing.md.
inline constexpr char kRouteMetadata[] = "x-tensord-route";

// Returns the key of all calls of one program.
std::string RouteOfProgram(const v1::Graph& graph, const v1::CompileOptions& options);

// Returns a key that no other session has; also for a stream of calls outside of sessions.
std::string NewSessionRoute();

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_ROUTING_H_
