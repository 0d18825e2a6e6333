#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/names.h"
#include "proto/codec/graph_codec.h"
#include "proto/codec/op_wire.h"
#include "proto/codec/tensor_codec.h"
#include "proto/codec/type_codec.h"

namespace tensord::codec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Gives every input and node a name of its own that may stand on the wire.
class NameTable {
 public:
  std::string Take(absl::string_view wanted) {
    const int64_t max_bytes = GraphLimits().name_bytes;
    std::string name(wanted);
    if (CheckName(name, max_bytes, /*reference=*/true).ok() && taken_.insert(name).second) return name;
    const bool extensible = CheckName(name, max_bytes - kSuffixBytes, /*reference=*/true).ok();
    do {
      name = absl::StrCat(extensible ? wanted : "node", ".", ++suffix_);
    } while (!taken_.insert(name).second);
    return name;
  }

 private:
  static constexpr int64_t kSuffixBytes = 21;  // '.' and any number

  absl::flat_hash_set<std::string> taken_;
  uint64_t suffix_ = 0;  // of the whole graph, so that many equal names cost no quadratic search
};

absl::Status WriteLists(const std::vector<std::vector<int64_t>>& lists, Message* message,
                        const FieldDescriptor* field) {
  const Reflection& reflection = *message->GetReflection();
  if (!field->is_repeated() && lists.size() > 1) {
    return Refuse(Refusal::kInternal, absl::StrCat("the attribute ", field->name(), " holds several lists"));
  }
  for (const std::vector<int64_t>& list : lists) {
    Message* const inner =
        field->is_repeated() ? reflection.AddMessage(message, field) : reflection.MutableMessage(message, field);
    for (int64_t v : list) inner->GetReflection()->AddInt64(inner, ListField(*field->message_type()), v);
  }
  return absl::OkStatus();
}

absl::Status WriteAttribute(const AttrValue& value, AttrKind kind, Message* message, const FieldDescriptor* field) {
  const Reflection& reflection = *message->GetReflection();
  switch (kind) {
    case AttrKind::kInt:
      reflection.SetInt64(message, field, std::get<int64_t>(value));
      break;
    case AttrKind::kInts:
      for (int64_t v : std::get<std::vector<int64_t>>(value)) reflection.AddInt64(message, field, v);
      break;
    case AttrKind::kDims:
      for (const DimExpr& size : std::get<std::vector<DimExpr>>(value)) {
        *static_cast<v1::DimExpr*>(reflection.AddMessage(message, field)) = EncodeDimExpr(size);
      }
      break;
    case AttrKind::kDType:
      reflection.SetEnumValue(message, field, EncodeDType(std::get<DType>(value)));
      break;
    case AttrKind::kEnum:
      reflection.SetEnumValue(message, field, static_cast<int>(std::get<int64_t>(value)));
      break;
    case AttrKind::kType:
      *static_cast<v1::TensorType*>(reflection.MutableMessage(message, field)) =
          EncodeType(*std::get<SharedType>(value));
      break;
    case AttrKind::kLiteral: {
      const LiteralPtr& literal = std::get<LiteralPtr>(value);
      if (literal == nullptr)
        return Refuse(Refusal::kInternal, absl::StrCat("the attribute ", field->name(), " is unset"));
      *static_cast<v1::Tensor*>(reflection.MutableMessage(message, field)) = EncodeLiteral(*literal);
      break;
    }
    case AttrKind::kFlag:
      reflection.SetBool(message, field, std::get<bool>(value));
      break;
    case AttrKind::kText:
      reflection.SetString(message, field, std::get<std::string>(value));
      break;
    case AttrKind::kMaybeInt:
      if (const auto number = std::get<std::optional<int64_t>>(value); number.has_value()) {
        reflection.SetInt64(message, field, *number);
      }
      break;
    case AttrKind::kMaybeReal:
      if (const auto number = std::get<std::optional<double>>(value); number.has_value()) {
        reflection.SetDouble(message, field, *number);
      }
      break;
    case AttrKind::kIntLists:
      return WriteLists(std::get<std::vector<std::vector<int64_t>>>(value), message, field);
  }
  return absl::OkStatus();
}

absl::Status WriteAttributes(const Node& node, Message* message) {
  ASSIGN_OR_RETURN(const OpFields fields, FieldsOf(*node.op, *message->GetDescriptor()));
  for (size_t i = 0; i < fields.attributes.size(); ++i) {
    const AttributeField& at = fields.attributes[i];
    if (at.field == nullptr) continue;
    RETURN_IF_ERROR(WriteAttribute(node.attrs.at(i), node.op->attrs[i].kind, at.MessageOf(message), at.field));
  }
  return absl::OkStatus();
}

absl::Status WriteOp(const Node& node, v1::Node* wire) {
  if (node.op->op_class == OpClass::kExtension) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Message> message, NewExtension(*node.op));
    RETURN_IF_ERROR(WriteAttributes(node, message.get()));
    PackExtension(*message, wire);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Message* const message, SetOp(*node.op, wire));
  return message == nullptr ? absl::OkStatus() : WriteAttributes(node, message);
}

}  // namespace

absl::StatusOr<v1::Graph> EncodeGraph(const Graph& graph) {
  v1::Graph wire;
  wire.set_name(graph.name());
  wire.set_algebra(static_cast<v1::Algebra>(graph.algebra()));
  NameTable names;
  std::vector<std::string> references;  // by value
  references.reserve(static_cast<size_t>(graph.num_values()));
  for (const GraphInput& input : graph.inputs()) {
    references.push_back(names.Take(input.name));
    v1::GraphInput& encoded = *wire.add_inputs();
    encoded.set_name(references.back());
    *encoded.mutable_type() = EncodeType(input.type);
  }
  for (const Node& node : graph.nodes()) {
    RETURN_IF_ERROR(CheckStopped());
    v1::Node& encoded = *wire.add_nodes();
    encoded.set_name(names.Take(node.name));
    for (ValueId operand : node.operands) encoded.add_inputs(references[static_cast<size_t>(operand.index)]);
    RETURN_IF_ERROR(WithNode(WriteOp(node, &encoded), node.name, node.op->name));
    references.push_back(encoded.name());
    for (int32_t i = 1; i < node.num_results; ++i) references.push_back(absl::StrCat(encoded.name(), ":", i));
  }
  for (const GraphOutput& output : graph.outputs()) {
    v1::GraphOutput& encoded = *wire.add_outputs();
    encoded.set_name(output.name);
    encoded.set_value(references[static_cast<size_t>(output.value.index)]);
  }
  return wire;
}

}  // namespace tensord::codec
