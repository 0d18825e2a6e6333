#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/names.h"
#include "google/protobuf/reflection.h"
#include "proto/codec/graph_codec.h"
#include "proto/codec/known_fields.h"
#include "proto/codec/op_wire.h"
#include "proto/codec/tensor_codec.h"
#include "proto/codec/type_codec.h"

namespace tensord::codec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Reads one graph. Views of the wire graph's names are kept, so it must outlive the decoder.
class GraphDecoder {
 public:
  GraphDecoder(const v1::Graph& wire, const OpRegistry& registry, const GraphLimits& limits, Order default_order)
      : wire_(wire), registry_(registry), limits_(limits), default_order_(default_order), sizes_(limits) {}

  absl::StatusOr<Graph> Decode(const std::function<absl::Status()>& still_wanted) && {
    RETURN_IF_ERROR(CheckKnownFields(wire_));
    RETURN_IF_ERROR(CheckGraphLimits(wire_, limits_));
    if (!v1::Algebra_IsValid(wire_.algebra())) {
      return Refuse(Refusal::kUnsupportedRequest,
                    absl::StrCat("this server does not know the graph's algebra, ", static_cast<int>(wire_.algebra())));
    }
    graph_.set_algebra(static_cast<Algebra>(wire_.algebra()));
    RETURN_IF_ERROR(CheckName(wire_.name(), limits_.name_bytes, /*reference=*/false));
    graph_.set_name(wire_.name());
    names_.reserve(static_cast<size_t>(wire_.inputs_size()) + static_cast<size_t>(wire_.nodes_size()));
    for (int i = 0; i < wire_.inputs_size(); ++i) {
      RETURN_IF_ERROR(Named(AddInput(wire_.inputs(i)), wire_.inputs(i).name(), i, "input"));
    }
    for (int i = 0; i < wire_.nodes_size(); ++i) {
      const v1::Node& node = wire_.nodes(i);
      if (still_wanted && i % kNodesBetween == 0) RETURN_IF_ERROR(still_wanted());
      if (absl::Status status = AddNode(node, i); !status.ok())
        return Named(std::move(status), node.name(), i, OpNameOf(node));
    }
    for (int i = 0; i < wire_.outputs_size(); ++i) {
      RETURN_IF_ERROR(Named(AddOutput(wire_.outputs(i)), wire_.outputs(i).name(), i, "output"));
    }
    return std::move(graph_);
  }

 private:
  struct Results {
    ValueId first;
    int32_t count = 1;
  };

  // Names the node of a refusal, by its number if it has no name.
  static absl::Status Named(absl::Status status, absl::string_view name, int index, absl::string_view op) {
    if (status.ok()) return status;
    return WithNode(std::move(status), name.empty() ? absl::StrCat("#", index) : PrintableName(name), op);
  }

  absl::Status AddName(absl::string_view name, Results results) {
    if (names_.emplace(name, results).second) return absl::OkStatus();
    return Refuse(Refusal::kNameDuplicate, absl::StrCat("two inputs or nodes have the name \"", name, "\""));
  }

  absl::Status AddInput(const v1::GraphInput& wire) {
    RETURN_IF_ERROR(CheckName(wire.name(), limits_.name_bytes, /*reference=*/true));
    RETURN_IF_ERROR(CheckKnownFields(wire));
    if (!wire.has_type()) return Refuse(Refusal::kAttributeInvalid, "the input has no type");
    ASSIGN_OR_RETURN(TensorType type, sizes_.DecodeType(wire.type()));
    return AddName(wire.name(), {.first = graph_.AddInput(wire.name(), std::move(type))});
  }

  absl::Status AddNode(const v1::Node& wire, int index) {
    RETURN_IF_ERROR(CheckName(wire.name(), limits_.name_bytes, /*reference=*/true));
    ASSIGN_OR_RETURN(const WireOp op, FindOp(wire, registry_));
    RETURN_IF_ERROR(CheckKnownFields(wire));
    Node node{
        .name = wire.name(), .op = op.def, .attrs = Attributes(op.def->attrs), .num_results = op.def->num_results};
    for (const std::string& reference : wire.inputs()) {
      ASSIGN_OR_RETURN(const ValueId operand, Resolve(reference, index));
      node.operands.push_back(operand);
    }
    if (op.attributes != nullptr) RETURN_IF_ERROR(ReadAttributes(*op.def, *op.attributes, &node.attrs));
    const int32_t count = node.num_results;
    return AddName(wire.name(), {.first = graph_.AddNode(std::move(node)), .count = count});
  }

  absl::Status AddOutput(const v1::GraphOutput& wire) {
    RETURN_IF_ERROR(CheckName(wire.name(), limits_.name_bytes, /*reference=*/false));
    RETURN_IF_ERROR(CheckKnownFields(wire));
    ASSIGN_OR_RETURN(const ValueId value, Resolve(wire.value(), wire_.nodes_size()));
    graph_.AddOutput(wire.name(), value);
    return absl::OkStatus();
  }

  // Returns the value that "x" or "x:1" names, seen from node `from`.
  absl::StatusOr<ValueId> Resolve(absl::string_view reference, int from) const {
    const size_t colon = reference.rfind(':');
    const absl::string_view name = reference.substr(0, colon);
    int32_t result = 0;
    if (colon != absl::string_view::npos) {
      const absl::string_view digits = reference.substr(colon + 1);
      const bool decimal = !digits.empty() && digits.find_first_not_of("0123456789") == absl::string_view::npos &&
                           (digits.size() == 1 || digits[0] != '0');
      if (!decimal || !absl::SimpleAtoi(digits, &result)) {
        return Refuse(Refusal::kValueUnknown,
                      absl::StrCat("a value reference is a name, or a name, ':' and a number: \"",
                                   PrintableName(reference), "\""));
      }
    }
    const auto it = names_.find(name);
    if (it == names_.end()) return RefuseReference(name, from);
    if (result >= it->second.count) {
      return Refuse(Refusal::kValueUnknown, absl::StrCat("\"", PrintableName(name), "\" has ", it->second.count,
                                                         " outputs, and output ", result, " is named"));
    }
    return ValueId{it->second.first.index + result};
  }

  absl::Status RefuseReference(absl::string_view name, int from) const {
    for (int i = from; i < wire_.nodes_size(); ++i) {
      if (absl::string_view(wire_.nodes(i).name()) != name) continue;
      return Refuse(Refusal::kGraphCycle,
                    absl::StrCat("the node names ", i == from ? "itself" : "a node that stands after it", ": \"",
                                 PrintableName(name), "\"; send nodes in topological order"));
    }
    return Refuse(Refusal::kValueUnknown, absl::StrCat("there is no input or node \"", PrintableName(name), "\""));
  }

  absl::Status ReadAttributes(const OpDef& op, const Message& message, Attributes* attrs) {
    RETURN_IF_ERROR(CheckKnownFields(message));
    auto it = fields_.find(&op);
    if (it == fields_.end()) {
      ASSIGN_OR_RETURN(OpFields fields, FieldsOf(op, *message.GetDescriptor()));
      it = fields_.emplace(&op, std::move(fields)).first;
    }
    for (const AttributeField& unused : it->second.unused) RETURN_IF_ERROR(CheckUnused(unused, message));
    for (size_t i = 0; i < op.attrs.size(); ++i) {
      const AttributeField& at = it->second.attributes[i];
      if (at.field == nullptr) continue;
      if (at.inside != nullptr) RETURN_IF_ERROR(CheckKnownFields(at.MessageOf(message)));
      ASSIGN_OR_RETURN(AttrValue value, ReadAttribute(op.attrs[i], at.MessageOf(message), at.field));
      attrs->Set(i, std::move(value));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckUnused(const AttributeField& unused, const Message& message) {
    const Message& inner = unused.MessageOf(message);
    const Reflection& reflection = *inner.GetReflection();
    const bool is_set = unused.field->is_repeated() ? reflection.FieldSize(inner, unused.field) > 0
                                                    : reflection.HasField(inner, unused.field);
    if (!is_set) return absl::OkStatus();
    return Refuse(Refusal::kAttributeInvalid,
                  absl::StrCat(unused.inside->name(), ".", unused.field->name(), " must be unset; set the ",
                               unused.field->name(), " of the operation itself"));
  }

  absl::StatusOr<AttrValue> ReadAttribute(const AttrDef& attr, const Message& message, const FieldDescriptor* field) {
    const Reflection& reflection = *message.GetReflection();
    switch (attr.kind) {
      case AttrKind::kInt:
        return AttrValue(int64_t{reflection.GetInt64(message, field)});
      case AttrKind::kInts: {
        const auto ints = reflection.GetRepeatedFieldRef<int64_t>(message, field);
        return AttrValue(std::vector<int64_t>(ints.begin(), ints.end()));
      }
      case AttrKind::kDims:
        return ReadDims(attr, message, field);
      case AttrKind::kDType: {
        const int number = reflection.GetEnumValue(message, field);
        if (!v1::DType_IsValid(number)) return RefuseNumber(attr, number);
        return AttrValue(static_cast<DType>(number));
      }
      case AttrKind::kEnum: {
        const int number = reflection.GetEnumValue(message, field);
        if (number < 0 || static_cast<size_t>(number) >= attr.enumerators.size()) return RefuseNumber(attr, number);
        return AttrValue(int64_t{number});
      }
      case AttrKind::kType: {
        if (!reflection.HasField(message, field)) return RefuseUnset(attr);
        ASSIGN_OR_RETURN(TensorType type,
                         sizes_.DecodeType(static_cast<const v1::TensorType&>(reflection.GetMessage(message, field))));
        return AttrValue(std::move(type));
      }
      case AttrKind::kLiteral: {
        if (!reflection.HasField(message, field)) return RefuseUnset(attr);
        ASSIGN_OR_RETURN(Literal literal,
                         DecodeLiteral(static_cast<const v1::Tensor&>(reflection.GetMessage(message, field)),
                                       default_order_, limits_));
        return AttrValue(std::make_shared<const Literal>(std::move(literal)));
      }
      case AttrKind::kFlag:
        return AttrValue(reflection.GetBool(message, field));
      case AttrKind::kText:
        return AttrValue(reflection.GetString(message, field));
      case AttrKind::kMaybeInt: {
        std::optional<int64_t> value;
        if (reflection.HasField(message, field)) value = reflection.GetInt64(message, field);
        return AttrValue(value);
      }
      case AttrKind::kMaybeReal: {
        std::optional<double> value;
        if (reflection.HasField(message, field)) value = reflection.GetDouble(message, field);
        return AttrValue(value);
      }
      case AttrKind::kIntLists:
        return ReadLists(message, field);
    }
    return Refuse(Refusal::kInternal, absl::StrCat("the attribute ", attr.name, " has no kind"));
  }

  absl::StatusOr<AttrValue> ReadDims(const AttrDef& attr, const Message& message, const FieldDescriptor* field) {
    const Reflection& reflection = *message.GetReflection();
    const int count = reflection.FieldSize(message, field);
    RETURN_IF_ERROR(CheckLimit(limits_, &GraphLimits::rank, count, absl::StrCat("sizes of the attribute ", attr.name)));
    std::vector<DimExpr> dims;
    dims.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(
          DimExpr size,
          sizes_.Decode(static_cast<const v1::DimExpr&>(reflection.GetRepeatedMessage(message, field, i))));
      if (size.is_constant()) {
        RETURN_IF_ERROR(CheckLimit(limits_, &GraphLimits::dimension, size.constant(), "size of an axis"));
      }
      dims.push_back(std::move(size));
    }
    return AttrValue(std::move(dims));
  }

  static absl::StatusOr<AttrValue> ReadLists(const Message& message, const FieldDescriptor* field) {
    const Reflection& reflection = *message.GetReflection();
    const FieldDescriptor* const list = ListField(*field->message_type());
    std::vector<std::vector<int64_t>> lists;
    const auto add = [&](const Message& inner) -> absl::Status {
      RETURN_IF_ERROR(CheckKnownFields(inner));
      const auto numbers = inner.GetReflection()->GetRepeatedFieldRef<int64_t>(inner, list);
      lists.emplace_back(numbers.begin(), numbers.end());
      return absl::OkStatus();
    };
    if (!field->is_repeated()) {
      if (reflection.HasField(message, field)) RETURN_IF_ERROR(add(reflection.GetMessage(message, field)));
      return AttrValue(std::move(lists));
    }
    const int count = reflection.FieldSize(message, field);
    lists.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) RETURN_IF_ERROR(add(reflection.GetRepeatedMessage(message, field, i)));
    return AttrValue(std::move(lists));
  }

  static absl::Status RefuseNumber(const AttrDef& attr, int number) {
    return Refuse(Refusal::kAttributeInvalid,
                  absl::StrCat("the attribute ", attr.name, " has no value of number ", number));
  }
  static absl::Status RefuseUnset(const AttrDef& attr) {
    return Refuse(Refusal::kAttributeInvalid, absl::StrCat("the attribute ", attr.name, " is unset"));
  }

  const v1::Graph& wire_;
  const OpRegistry& registry_;
  const GraphLimits& limits_;
  const Order default_order_;
  DimExprDecoder sizes_;
  Graph graph_;
  absl::flat_hash_map<absl::string_view, Results> names_;
  absl::flat_hash_map<const OpDef*, OpFields> fields_;
};

}  // namespace

absl::Status CheckGraphLimits(const v1::Graph& wire, const GraphLimits& limits) {
  RETURN_IF_ERROR(CheckLimit(limits, &GraphLimits::graph_inputs, wire.inputs_size(), "inputs of the graph"));
  RETURN_IF_ERROR(CheckLimit(limits, &GraphLimits::graph_nodes, wire.nodes_size(), "nodes of the graph"));
  RETURN_IF_ERROR(CheckLimit(limits, &GraphLimits::graph_outputs, wire.outputs_size(), "outputs of the graph"));
  int64_t edges = 0, constant_bytes = 0;
  for (const v1::Node& node : wire.nodes()) {
    edges += node.inputs_size();
    if (node.has_constant()) constant_bytes += static_cast<int64_t>(node.constant().value().data().size());
  }
  RETURN_IF_ERROR(CheckLimit(limits, &GraphLimits::graph_edges, edges, "operands of the graph's nodes"));
  RETURN_IF_ERROR(CheckLimit(limits, &GraphLimits::constant_bytes, constant_bytes, "bytes of the graph's constants"));
  const int64_t bytes = static_cast<int64_t>(wire.ByteSizeLong()) - constant_bytes;
  return CheckLimit(limits, &GraphLimits::graph_bytes, bytes, "bytes of the graph without its constants");
}

absl::StatusOr<Graph> DecodeGraph(const v1::Graph& wire, const OpRegistry& registry, const GraphLimits& limits,
                                  Order default_order, const std::function<absl::Status()>& still_wanted) {
  return GraphDecoder(wire, registry, limits, default_order).Decode(still_wanted);
}

}  // namespace tensord::codec
