#ifndef TENSORD_SERVER_REFLECTION_REFLECTION_SERVICE_H_
#define TENSORD_SERVER_REFLECTION_REFLECTION_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>
#include <vector>

namespace tensord::server {

// Makes grpc.reflection.v1 and .v1alpha for gRPC's callback API, over all files that are linked in. gRPC's own service
// answers by a thread for each stream, and keeps one that polls beside those for callbacks. `services`: the server's
// other services. Outlives the server that it is registered with.
std::unique_ptr<grpc::Service> MakeReflectionService(std::vector<std::string> services);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_REFLECTION_REFLECTION_SERVICE_H_
