#include "server/rpc/status_bridge.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/codec/error_codec.h"
#include "server/rpc/wire_bytes.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

// Clients of gRPC refuse trailers of more than 8 KiB by default, and the message is in there twice: once with up to
// three bytes a byte, once in base64.
constexpr size_t kMaxMessageBytes = 1024;

std::string Shortened(std::string message) {
  if (message.size() <= kMaxMessageBytes) return message;
  size_t end = kMaxMessageBytes;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;  // not inside a character
  message.resize(end);
  return message + "…";
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const v1::Error error = codec::EncodeError(status);
  const std::string message = Shortened(error.message());

  std::string any;
  AppendBytesField(1, absl::StrCat("type.googleapis.com/", v1::ErrorDetail::descriptor()->full_name()), &any);
  AppendBytesField(2, error.detail().SerializeAsString(), &any);
  std::string details;  // google.rpc.Status
  AppendVarintField(1, static_cast<uint64_t>(status.raw_code()), &details);
  AppendBytesField(2, message, &details);
  AppendBytesField(3, any, &details);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message, details);
}

}  // namespace tensord::server
