#include "server/rpc/wire/parse_message.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"

namespace tensord::server {
namespace {

absl::Status Malformed(int64_t num_bytes, const google::protobuf::Message& message) {
  return Refuse(Refusal::kMalformedMessage,
                absl::StrCat("the request's ", num_bytes, " bytes are no ", message.GetDescriptor()->full_name()));
}

}  // namespace

absl::Status ParseMessage(grpc::ByteBuffer* bytes, google::protobuf::Message* message) {
  absl::Status parsed;
  {
    const int64_t num_bytes = static_cast<int64_t>(bytes->Length());
    grpc::ProtoBufferReader reader(bytes);
    parsed = reader.status().ok() ? ParseMessage(&reader, num_bytes, message) : Malformed(num_bytes, *message);
  }
  bytes->Clear();
  return parsed;
}

absl::Status ParseMessage(google::protobuf::io::ZeroCopyInputStream* stream, int64_t num_bytes,
                          google::protobuf::Message* message) {
  if (!message->ParseFromZeroCopyStream(stream)) return Malformed(num_bytes, *message);
  const auto& unknown = message->GetReflection()->GetUnknownFields(*message);
  if (unknown.empty()) return absl::OkStatus();
  return Refuse(Refusal::kUnsupportedRequest,
                absl::StrCat("this server does not know field ", unknown.field(0).number(), " of ",
                             message->GetDescriptor()->full_name()));
}

}  // namespace tensord::server
