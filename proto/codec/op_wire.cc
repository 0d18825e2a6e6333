#include "proto/codec/op_wire.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/names.h"
#include "proto/codec/family_messages.h"
#include "proto/codec/known_fields.h"
#include "proto/codec/limits.h"

namespace tensord::codec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The enumerators of UnaryOp or BinaryOp as ops' names, both ways.
class EnumOps {
 public:
  EnumOps(const EnumDescriptor& descriptor, absl::string_view prefix) {
    for (int i = 0; i < descriptor.value_count(); ++i) {
      const google::protobuf::EnumValueDescriptor& value = *descriptor.value(i);
      if (value.number() == 0) continue;
      std::string name = absl::AsciiStrToLower(absl::string_view(value.name()).substr(prefix.size()));
      numbers_.emplace(name, value.number());
      names_.emplace(value.number(), std::move(name));
    }
  }

  // Empty if there is none.
  absl::string_view Name(int number) const {
    const auto it = names_.find(number);
    return it == names_.end() ? absl::string_view() : absl::string_view(it->second);
  }
  // 0 if there is none.
  int Number(absl::string_view name) const {
    const auto it = numbers_.find(name);
    return it == numbers_.end() ? 0 : it->second;
  }

 private:
  absl::flat_hash_map<int, std::string> names_;
  absl::flat_hash_map<std::string, int> numbers_;
};

const EnumOps& UnaryOps() {
  static const EnumOps* const ops = new EnumOps(*v1::UnaryOp_descriptor(), "UNARY_OP_");
  return *ops;
}

const EnumOps& BinaryOps() {
  static const EnumOps* const ops = new EnumOps(*v1::BinaryOp_descriptor(), "BINARY_OP_");
  return *ops;
}

absl::Status Unknown(absl::string_view name) {
  return Refuse(Refusal::kOpUnknown, absl::StrCat("this server does not know the operation \"", name, "\""));
}

absl::StatusOr<WireOp> FindEnumOp(const EnumOps& ops, absl::string_view field, int number, OpClass op_class,
                                  const OpRegistry& registry) {
  if (number == 0) return Refuse(Refusal::kOpUnset, absl::StrCat("the node's ", field, " operation is unspecified"));
  const absl::string_view name = ops.Name(number);
  if (name.empty()) return Unknown(absl::StrCat(field, " ", number));
  const OpDef* const op = registry.Find(name);
  if (op == nullptr || op->op_class != op_class) return Unknown(name);
  return WireOp{.def = op, .attributes = nullptr, .unpacked = nullptr};
}

const FieldDescriptor* OpField(const v1::Node& node) {
  static const google::protobuf::OneofDescriptor* const oneof = v1::Node::descriptor()->FindOneofByName("op");
  return node.GetReflection()->GetOneofFieldDescriptor(node, oneof);
}

bool Fits(const AttrDef& attr, const FieldDescriptor& field) {
  const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  const std::string type = is_message ? field.message_type()->full_name() : "";
  switch (attr.kind) {
    case AttrKind::kInt:
      return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
    case AttrKind::kInts:
      return field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
    case AttrKind::kDims:
      return field.is_repeated() && type == v1::DimExpr::descriptor()->full_name();
    case AttrKind::kDType:
      return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM &&
             field.enum_type() == v1::DType_descriptor();
    case AttrKind::kEnum:
      return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
    case AttrKind::kType:
      return !field.is_repeated() && type == v1::TensorType::descriptor()->full_name();
    case AttrKind::kLiteral:
      return !field.is_repeated() && type == v1::Tensor::descriptor()->full_name();
    case AttrKind::kFlag:
      return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
    case AttrKind::kText:
      return !field.is_repeated() && field.type() == FieldDescriptor::TYPE_STRING;
    case AttrKind::kMaybeInt:
      return field.has_presence() && field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
    case AttrKind::kMaybeReal:
      return field.has_presence() && field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    case AttrKind::kIntLists:
      return is_message && ListField(*field.message_type()) != nullptr;
  }
  return false;
}

// Tells whether a field is a message with attributes of its own, false if it is the value of one.
bool HoldsAttributes(const FieldDescriptor& field) {
  if (field.is_repeated() || field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return false;
  const Descriptor* const type = field.message_type();
  return type != v1::TensorType::descriptor() && type != v1::Tensor::descriptor() && type != v1::DimExpr::descriptor();
}

// "tensord.linalg.v1" of "tensord.linalg.v1.Svd".
absl::string_view PackageOf(absl::string_view message) {
  return message.substr(0, std::min(message.rfind('.'), message.size()));
}

// The same family in another version, for advice; empty if the registry has none.
absl::string_view OtherVersionOf(absl::string_view message, const OpRegistry& registry) {
  const absl::string_view family = PackageOf(PackageOf(message));
  if (family.empty()) return family;
  for (const OpDef* op : registry.all()) {
    if (op->op_class == OpClass::kExtension && PackageOf(PackageOf(op->name)) == family) return PackageOf(op->name);
  }
  return absl::string_view();
}

const Message* PrototypeOf(absl::string_view name) {
  LinkFamilyMessages();
  const Descriptor* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(std::string(name));
  if (descriptor == nullptr) return nullptr;
  return google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor);
}

absl::StatusOr<WireOp> FindExtension(const v1::Extension& extension, const OpRegistry& registry) {
  RETURN_IF_ERROR(CheckKnownFields(extension));
  const absl::string_view url = extension.op().type_url();
  if (url.empty()) return Refuse(Refusal::kOpUnset, "the node's extension is empty");
  const absl::string_view name = url.substr(url.rfind('/') + 1);
  const OpDef* const op = registry.Find(name);
  if (op == nullptr || op->op_class != OpClass::kExtension) {
    const absl::string_view other = OtherVersionOf(name, registry);
    return Refuse(Refusal::kFamilyUnknown,
                  absl::StrCat("no family of this server provides the operation \"", PrintableName(name), "\"",
                               other.empty() || other == PackageOf(name) ? "" : "; it has the family ",
                               other == PackageOf(name) ? "" : other));
  }
  const Message* const prototype = PrototypeOf(name);
  if (prototype == nullptr) {
    return Refuse(Refusal::kInternal, absl::StrCat("the operation \"", name, "\" has no message"));
  }
  std::unique_ptr<Message> message(prototype->New());
  if (!message->ParseFromString(extension.op().value())) {
    return Refuse(Refusal::kAttributeInvalid, absl::StrCat("the extension's bytes are not a message ", name));
  }
  const Message* const attributes = message.get();
  return WireOp{.def = op, .attributes = attributes, .unpacked = std::move(message)};
}

}  // namespace

absl::StatusOr<WireOp> FindOp(const v1::Node& node, const OpRegistry& registry) {
  switch (node.op_case()) {
    case v1::Node::OP_NOT_SET:
      // An operation of a newer contract arrives as an unknown field.
      if (!CheckKnownFields(node).ok()) return Unknown("of a newer contract");
      return Refuse(Refusal::kOpUnset, "the node has no operation");
    case v1::Node::kUnary:
      return FindEnumOp(UnaryOps(), "unary", node.unary(), OpClass::kUnary, registry);
    case v1::Node::kBinary:
      return FindEnumOp(BinaryOps(), "binary", node.binary(), OpClass::kBinary, registry);
    case v1::Node::kExtension:
      return FindExtension(node.extension(), registry);
    default:
      break;
  }
  const FieldDescriptor& field = *OpField(node);
  const OpDef* const op = registry.Find(field.name());
  if (op == nullptr || op->op_class != OpClass::kPlain) return Unknown(field.name());
  return WireOp{.def = op, .attributes = &node.GetReflection()->GetMessage(node, &field), .unpacked = nullptr};
}

absl::string_view OpNameOf(const v1::Node& node) {
  absl::string_view name;
  if (node.op_case() == v1::Node::OP_NOT_SET) return name;
  if (node.op_case() == v1::Node::kUnary) name = UnaryOps().Name(node.unary());
  if (node.op_case() == v1::Node::kBinary) name = BinaryOps().Name(node.binary());
  if (node.op_case() == v1::Node::kExtension) {
    const absl::string_view url = node.extension().op().type_url();
    if (CheckName(url, GraphLimits().name_bytes, /*reference=*/false).ok()) name = url.substr(url.rfind('/') + 1);
  }
  return name.empty() ? absl::string_view(OpField(node)->name()) : name;
}

absl::StatusOr<Message*> SetOp(const OpDef& op, v1::Node* node) {
  if (const int unary = UnaryOps().Number(op.name); op.op_class == OpClass::kUnary && unary != 0) {
    node->set_unary(static_cast<v1::UnaryOp>(unary));
    return nullptr;
  }
  if (const int binary = BinaryOps().Number(op.name); op.op_class == OpClass::kBinary && binary != 0) {
    node->set_binary(static_cast<v1::BinaryOp>(binary));
    return nullptr;
  }
  const FieldDescriptor* const field = v1::Node::descriptor()->FindFieldByName(std::string(op.name));
  if (op.op_class != OpClass::kPlain || field == nullptr || field->containing_oneof() == nullptr ||
      field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return Refuse(Refusal::kInternal, absl::StrCat("the operation \"", op.name, "\" has no wire form"));
  }
  return node->GetReflection()->MutableMessage(node, field);
}

absl::StatusOr<std::unique_ptr<Message>> NewExtension(const OpDef& op) {
  const Message* const prototype = PrototypeOf(op.name);
  if (prototype == nullptr) {
    return Refuse(Refusal::kInternal, absl::StrCat("the operation \"", op.name, "\" has no message"));
  }
  return std::unique_ptr<Message>(prototype->New());
}

void PackExtension(const Message& message, v1::Node* node) {
  node->mutable_extension()->mutable_op()->PackFrom(message);
}

const FieldDescriptor* ListField(const Descriptor& message) {
  if (message.field_count() != 1) return nullptr;
  const FieldDescriptor* const field = message.field(0);
  return field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 ? field : nullptr;
}

const Message& AttributeField::MessageOf(const Message& op) const {
  return inside == nullptr ? op : op.GetReflection()->GetMessage(op, inside);
}

Message* AttributeField::MessageOf(Message* op) const {
  return inside == nullptr ? op : op->GetReflection()->MutableMessage(op, inside);
}

absl::StatusOr<OpFields> FieldsOf(const OpDef& op, const Descriptor& message) {
  std::vector<AttributeField> inner;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const bool is_attribute =
        std::any_of(op.attrs.begin(), op.attrs.end(), [&](const AttrDef& attr) { return attr.name == field.name(); });
    if (!HoldsAttributes(field) || is_attribute) continue;
    for (int k = 0; k < field.message_type()->field_count(); ++k) {
      inner.push_back({.inside = &field, .field = field.message_type()->field(k)});
    }
  }
  OpFields fields;
  for (const AttrDef& attr : op.attrs) {
    AttributeField found;
    if (!attr.engine_only) {
      found.field = message.FindFieldByName(std::string(attr.name));
      for (auto it = inner.begin(); found.field == nullptr && it != inner.end(); ++it) {
        if (it->field->name() == attr.name) found = *it;
      }
      if (found.field == nullptr || !Fits(attr, *found.field)) {
        return Refuse(Refusal::kInternal,
                      absl::StrCat("the attribute ", attr.name, " has no fitting field in ", message.full_name()));
      }
    }
    fields.attributes.push_back(found);
  }
  for (const AttributeField& field : inner) {
    const bool used = std::any_of(fields.attributes.begin(), fields.attributes.end(),
                                  [&](const AttributeField& a) { return a.field == field.field; });
    if (!used) fields.unused.push_back(field);
  }
  return fields;
}

}  // namespace tensord::codec
