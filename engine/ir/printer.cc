#include "engine/ir/printer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/ir/literal_text.h"
#include "engine/ir/text_cursor.h"

namespace tensord {
namespace {

constexpr absl::string_view kAlgebras[] = {"standard", "max_plus", "min_plus", "max_times", "or_and"};

std::string ValueText(const Graph& graph, ValueId value) {
  if (graph.is_input(value)) return absl::StrCat("%", NameText(graph.inputs()[static_cast<size_t>(value.index)].name));
  const Node& node = graph.nodes()[static_cast<size_t>(graph.producer(value))];
  const int32_t result = value.index - node.first_result.index;
  const std::string text = absl::StrCat("%", NameText(node.name));
  return result == 0 ? text : absl::StrCat(text, ":", result);
}

// Empty for an attribute that is unset.
std::string AttributeText(const AttrDef& def, const AttrValue& value) {
  switch (def.kind) {
    case AttrKind::kInt:
      return absl::StrCat(std::get<int64_t>(value));
    case AttrKind::kInts: {
      const auto& ints = std::get<std::vector<int64_t>>(value);
      return ints.empty() ? "" : absl::StrCat("[", absl::StrJoin(ints, ", "), "]");
    }
    case AttrKind::kDims: {
      const auto& dims = std::get<std::vector<DimExpr>>(value);
      if (dims.empty()) return "";
      return absl::StrCat(
          "[", absl::StrJoin(dims, ", ", [](std::string* out, const DimExpr& d) { out->append(d.ToString()); }), "]");
    }
    case AttrKind::kDType: {
      const DType dtype = std::get<DType>(value);
      return dtype == DType::kInvalid ? "" : std::string(Name(dtype));
    }
    case AttrKind::kEnum: {
      const int64_t number = std::get<int64_t>(value);
      return number == 0 ? "" : std::string(def.enumerators[static_cast<size_t>(number)]);
    }
    case AttrKind::kType: {
      const TensorType& type = *std::get<SharedType>(value);
      return type.dtype == DType::kInvalid ? "" : ToString(type);
    }
    case AttrKind::kLiteral: {
      const LiteralPtr& literal = std::get<LiteralPtr>(value);
      return literal == nullptr ? "" : LiteralText(*literal);
    }
    case AttrKind::kFlag:
      return std::get<bool>(value) ? "true" : "";
    case AttrKind::kText: {
      const auto& text = std::get<std::string>(value);
      return text.empty() ? "" : Quote(text);
    }
    case AttrKind::kMaybeInt: {
      const auto& number = std::get<std::optional<int64_t>>(value);
      return number.has_value() ? absl::StrCat(*number) : "";
    }
    case AttrKind::kMaybeReal: {
      const auto& number = std::get<std::optional<double>>(value);
      return number.has_value() ? absl::StrFormat("%.17g", *number) : "";
    }
    case AttrKind::kIntLists: {
      const auto& lists = std::get<std::vector<std::vector<int64_t>>>(value);
      if (lists.empty()) return "";
      const auto list_text = [](std::string* out, const std::vector<int64_t>& list) {
        absl::StrAppend(out, "[", absl::StrJoin(list, ", "), "]");
      };
      return absl::StrCat("[", absl::StrJoin(lists, ", ", list_text), "]");
    }
  }
  return "";
}

}  // namespace

absl::string_view Name(Algebra algebra) { return kAlgebras[static_cast<size_t>(algebra)]; }

std::string AttributesText(const OpDef& op, const Attributes& attrs) {
  std::string text;
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const AttrDef& def = op.attrs[i];
    if (def.engine_only && IsUnset(def.kind, attrs.at(i))) continue;
    const std::string value = AttributeText(def, attrs.at(i));
    if (value.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "{" : ", ", def.name, " = ", value);
  }
  return text.empty() ? text : absl::StrCat(text, "}");
}

std::string PrintNode(const Graph& graph, const Node& node) {
  std::string text = absl::StrCat("%", NameText(node.name));
  if (node.num_results != 1) absl::StrAppend(&text, ":", node.num_results);
  absl::StrAppend(&text, " = ", node.op->name, "(");
  for (size_t i = 0; i < node.operands.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", ValueText(graph, node.operands[i]));
  }
  text += ")";
  const std::string attributes = AttributesText(*node.op, node.attrs);
  if (!attributes.empty()) absl::StrAppend(&text, " ", attributes);
  for (int32_t i = 0; i < node.num_results; ++i) {
    const TensorType& type = graph.type({node.first_result.index + i});
    if (type.dtype == DType::kInvalid) break;
    absl::StrAppend(&text, i == 0 ? " : " : ", ", ToString(type));
  }
  if (node.body != nullptr) {
    absl::StrAppend(&text, " = ", absl::StrReplaceAll(PrintGraph(*node.body), {{"\n", "\n  "}}));
    text.resize(text.find_last_not_of(" \n") + 1);
  }
  return text;
}

std::string PrintGraph(const Graph& graph) {
  std::string text = absl::StrCat("graph ", Quote(graph.name()));
  if (graph.algebra() != Algebra::kStandard) absl::StrAppend(&text, " algebra ", Name(graph.algebra()));
  text += " {\n";
  for (const GraphInput& input : graph.inputs()) {
    absl::StrAppend(&text, "  %", NameText(input.name), " = input : ", ToString(input.type), "\n");
  }
  for (const Node& node : graph.nodes()) absl::StrAppend(&text, "  ", PrintNode(graph, node), "\n");
  for (const GraphOutput& output : graph.outputs()) {
    absl::StrAppend(&text, "  output ", Quote(output.name), " = ", ValueText(graph, output.value), "\n");
  }
  text += "}\n";
  return text;
}

}  // namespace tensord
