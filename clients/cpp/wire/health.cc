#include "clients/cpp/wire/health.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "clients/cpp/wire/wire_cursor.h"
#include "google/protobuf/wrappers.pb.h"

namespace tensord::client {
namespace {

constexpr uint32_t kStatusField = 1;

absl::Status MalformedAnswer() { return absl::InternalError("the server's answer is no HealthCheckResponse"); }

}  // namespace

absl::string_view HealthName(Health health) {
  switch (health) {
    case Health::kUnknown:
      return "UNKNOWN";
    case Health::kServing:
      return "SERVING";
    case Health::kNotServing:
      return "NOT_SERVING";
    case Health::kServiceUnknown:
      return "SERVICE_UNKNOWN";
  }
  return "UNKNOWN";
}

grpc::ByteBuffer EncodeHealthRequest(absl::string_view service) {
  // HealthCheckRequest is a string in field 1, as StringValue is.
  google::protobuf::StringValue request;
  request.set_value(std::string(service));
  const grpc::Slice slice(request.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<Health> DecodeHealthResponse(const grpc::ByteBuffer& response) {
  std::optional<WireCursor> cursor = WireCursor::Open(response);
  if (!cursor.has_value()) return MalformedAnswer();
  uint64_t status = 0;
  while (cursor->position() < cursor->size()) {
    WireCursor::Tag tag;
    if (!cursor->ReadTag(&tag)) return MalformedAnswer();
    const bool is_read = tag.number == kStatusField && tag.wire_type == WireCursor::kVarint
                             ? cursor->ReadVarint(&status)
                             : cursor->SkipField(tag, cursor->size());
    if (!is_read) return MalformedAnswer();
  }
  if (status > static_cast<uint64_t>(Health::kServiceUnknown)) return Health::kUnknown;
  return static_cast<Health>(status);
}

}  // namespace tensord::client
