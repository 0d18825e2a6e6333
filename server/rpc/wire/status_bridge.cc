#include "server/rpc/wire/status_bridge.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/repeated_refusal.h"
#include "engine/ir/names.h"
#include "google/protobuf/arena.h"
#include "proto/codec/error_codec.h"
#include "server/rpc/wire/wire_bytes.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

// Clients of gRPC refuse trailers of more than 8 KiB by default, and the message is in there twice: once with up to
// three bytes a byte, once in base64.
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kDetailBytes = 1024;      // that nearly all fit into
constexpr size_t kMostAroundDetails = 32;  // tags and lengths

std::string Shortened(std::string message) {
  if (message.size() <= kMaxMessageBytes) return message;
  size_t end = kMaxMessageBytes;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;  // not inside a character
  message.resize(end);
  return message + "…";
}

grpc::Status Encode(const absl::Status& status) {
  static const std::string* const type_url =
      new std::string(absl::StrCat("type.googleapis.com/", v1::ErrorDetail::descriptor()->full_name()));
  alignas(8) char block[kDetailBytes];
  google::protobuf::Arena arena(block, sizeof(block));
  auto* const detail = google::protobuf::Arena::CreateMessage<v1::ErrorDetail>(&arena);
  codec::EncodeErrorDetail(status, detail);
  const int64_t detail_size = static_cast<int64_t>(detail->ByteSizeLong());
  const int64_t any_size = LengthFieldSize(static_cast<int64_t>(type_url->size())) + LengthFieldSize(detail_size);
  const std::string message = Shortened(PrintableMessage(status.message()));

  std::string details;  // google.rpc.Status, with one google.protobuf.Any
  details.reserve(message.size() + static_cast<size_t>(any_size) + kMostAroundDetails);
  AppendVarintField(1, static_cast<uint64_t>(status.raw_code()), &details);
  AppendBytesField(2, message, &details);
  AppendLengthTag(3, any_size, &details);
  AppendBytesField(1, *type_url, &details);
  AppendLengthTag(2, detail_size, &details);
  detail->AppendToString(&details);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message, details);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  thread_local RepeatedRefusal<grpc::Status> last;
  return last.Get(status, Encode);
}

}  // namespace tensord::server
