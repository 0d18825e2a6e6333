#include "proto/codec/known_fields.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "google/protobuf/unknown_field_set.h"

namespace tensord::codec {

absl::Status CheckKnownFields(const google::protobuf::Message& message) {
  const google::protobuf::UnknownFieldSet& unknown = message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return absl::OkStatus();
  return Refuse(Refusal::kUnsupportedRequest,
                absl::StrCat("a ", message.GetDescriptor()->name(), " has the field ", unknown.field(0).number(),
                             ", which this server does not know: it is of a newer contract"));
}

}  // namespace tensord::codec
