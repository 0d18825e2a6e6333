#ifndef TENSORD_PROTO_CODEC_OP_WIRE_H_
#define TENSORD_PROTO_CODEC_OP_WIRE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/op_def.h"
#include "engine/ir/op_registry.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::codec {

// The names of ops and their attributes on the wire. An op's name is a field of Node, or an enumerator of UnaryOp or
// BinaryOp in lower case without its prefix; an attribute's name is a field of the op's message, or of a message of
// attributes inside of it.

// A node's operation: its definition, and the message with its attributes, nullptr if it has none. That is the node's
// own message, or the unpacked extension.
struct WireOp {
  const OpDef* def = nullptr;
  const google::protobuf::Message* attributes = nullptr;
  std::unique_ptr<const google::protobuf::Message> unpacked;
};

// Finds a node's operation. OP_UNSET, OP_UNKNOWN (for an op of the contract that the registry lacks, and for one of a
// newer contract), FAMILY_UNKNOWN, or ATTRIBUTE_INVALID for an extension whose bytes are not its message.
absl::StatusOr<WireOp> FindOp(const v1::Node& node, const OpRegistry& registry);

// Returns the name of a node's operation, for errors: "transpose", "unary"; empty if it has none.
absl::string_view OpNameOf(const v1::Node& node);

// Sets a node's operation. Returns the message for its attributes, nullptr if it has none. INTERNAL if the op has no
// wire form. The attributes of an extension are written into a message of their own, and packed.
absl::StatusOr<google::protobuf::Message*> SetOp(const OpDef& op, v1::Node* node);
absl::StatusOr<std::unique_ptr<google::protobuf::Message>> NewExtension(const OpDef& op);
void PackExtension(const google::protobuf::Message& message, v1::Node* node);

// Returns the only field of a message that is a list of integers; nullptr for any other message.
const google::protobuf::FieldDescriptor* ListField(const google::protobuf::Descriptor& message);

// The place of an attribute on the wire: a field of the op's message, or of the message in its field `inside`.
struct AttributeField {
  const google::protobuf::FieldDescriptor* inside = nullptr;
  const google::protobuf::FieldDescriptor* field = nullptr;

  const google::protobuf::Message& MessageOf(const google::protobuf::Message& op) const;
  google::protobuf::Message* MessageOf(google::protobuf::Message* op) const;
};

struct OpFields {
  std::vector<AttributeField>
      attributes;                      // in the order of the op's schema; no field for one that is the engine's alone
  std::vector<AttributeField> unused;  // fields of inner messages that stay unset: the op says it elsewhere
};

// Fails with INTERNAL if the op's message does not fit its schema.
absl::StatusOr<OpFields> FieldsOf(const OpDef& op, const google::protobuf::Descriptor& message);

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_OP_WIRE_H_
