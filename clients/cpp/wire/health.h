// The two messages of grpc.health.v1, whose generated classes gRPC does not install.
#ifndef TENSORD_CLIENTS_CPP_WIRE_HEALTH_H_
#define TENSORD_CLIENTS_CPP_WIRE_HEALTH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensord/health.h"

namespace tensord::client {

inline constexpr char kHealthMethod[] = "/grpc.health.v1.Health/Check";

grpc::ByteBuffer EncodeHealthRequest(absl::string_view service);

// Fails with INTERNAL if the bytes are no HealthCheckResponse. A status of a later protocol is kUnknown.
absl::StatusOr<Health> DecodeHealthResponse(const grpc::ByteBuffer& response);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_WIRE_HEALTH_H_
