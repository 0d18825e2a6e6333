#ifndef TENSORD_TESTS_BENCH_S4_RAW_PEER_H_
#define TENSORD_TESTS_BENCH_S4_RAW_PEER_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

namespace tensord {

// Execute that never looks at what comes, and answers a short request with a slice over the tensor: as fast as gRPC is.
std::unique_ptr<grpc::Service> MakeRawService(std::shared_ptr<const std::string> tensor);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_S4_RAW_PEER_H_
