#include "engine/ir/parser.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/literal_text.h"
#include "engine/ir/names.h"
#include "engine/ir/printer.h"
#include "engine/ir/text_cursor.h"
#include "engine/ir/verifier.h"

namespace tensord {
namespace {

constexpr int64_t kMaxNameBytes = 4096;
// A few bytes of text may ask for this many results.
constexpr int64_t kMaxResults = 8;

class GraphParser {
 public:
  GraphParser(absl::string_view text, const OpRegistry& registry) : cursor_(text), registry_(registry) {}

  absl::StatusOr<Graph> Parse() && {
    RETURN_IF_ERROR(Header());
    while (!cursor_.Take("}")) RETURN_IF_ERROR(Statement());
    if (!cursor_.AtEnd()) return cursor_.Error("unexpected text after the graph");
    RETURN_IF_ERROR(CheckTypes());
    return std::move(graph_);
  }

 private:
  struct Results {
    ValueId first;
    int32_t count = 1;
  };
  struct WrittenType {
    ValueId value;
    TensorType type;
    size_t position;
  };

  absl::Status Header() {
    RETURN_IF_ERROR(cursor_.Expect("graph"));
    size_t position = cursor_.Position();
    ASSIGN_OR_RETURN(const std::string name, cursor_.Quoted());
    RETURN_IF_ERROR(CheckNameAt(name, position, /*reference=*/false));
    graph_.set_name(name);
    if (cursor_.Take("algebra")) {
      position = cursor_.Position();
      const absl::string_view algebra = cursor_.Word();
      int number = 0;
      while (number <= static_cast<int>(Algebra::kOrAnd) && Name(static_cast<Algebra>(number)) != algebra) ++number;
      if (number > static_cast<int>(Algebra::kOrAnd)) {
        return cursor_.ErrorAt(position, Refusal::kTextSyntax, "there is no algebra of that name");
      }
      graph_.set_algebra(static_cast<Algebra>(number));
    }
    return cursor_.Expect("{");
  }

  absl::Status Statement() {
    if (cursor_.Take("%")) return Definition();
    if (cursor_.Take("output")) return Output();
    return cursor_.Error("expected '%', 'output' or '}'");
  }

  absl::Status Definition() {
    const size_t position = cursor_.Position();
    ASSIGN_OR_RETURN(const std::string name, cursor_.Name());
    RETURN_IF_ERROR(CheckNameAt(name, position, /*reference=*/true));
    int64_t results = 1;
    if (cursor_.Take(":")) {
      ASSIGN_OR_RETURN(results, cursor_.Integer());
      if (results < 1 || results > kMaxResults) {
        return cursor_.ErrorAt(position, Refusal::kTextSyntax,
                               absl::StrCat("a node has 1 to ", kMaxResults, " results"));
      }
    }
    RETURN_IF_ERROR(cursor_.Expect("="));
    const size_t op_position = cursor_.Position();
    const absl::string_view word = cursor_.Word();
    if (word == "input") return Input(name, position, results);
    const OpDef* const op = registry_.Find(word);
    if (op == nullptr) {
      if (word.empty()) return cursor_.ErrorAt(op_position, Refusal::kTextSyntax, "expected an operation");
      return cursor_.ErrorAt(op_position, Refusal::kOpUnknown, absl::StrCat("there is no operation \"", word, "\""));
    }
    // How many results an op has is its own matter, save where a body says it.
    if (op->op_class == OpClass::kExtension && results != op->num_results) {
      return cursor_.ErrorAt(position, Refusal::kTextSyntax,
                             absl::StrCat(op->name, " has ", op->num_results, " results"));
    }
    Node node{.name = name, .op = op, .attrs = Attributes(op->attrs), .num_results = static_cast<int32_t>(results)};
    RETURN_IF_ERROR(Operands(&node));
    RETURN_IF_ERROR(AttributeList(*op, &node.attrs));
    const ValueId first = graph_.AddNode(std::move(node));
    RETURN_IF_ERROR(Define(name, position, {.first = first, .count = static_cast<int32_t>(results)}));
    return ResultTypes(first, static_cast<int32_t>(results));
  }

  absl::Status Input(const std::string& name, size_t position, int64_t results) {
    if (!graph_.nodes().empty()) {
      return cursor_.ErrorAt(position, Refusal::kTextSyntax, "inputs stand before the nodes");
    }
    if (results != 1) return cursor_.ErrorAt(position, Refusal::kTextSyntax, "an input is one value");
    RETURN_IF_ERROR(cursor_.Expect(":"));
    ASSIGN_OR_RETURN(TensorType type, ParseType(cursor_));
    return Define(name, position, {.first = graph_.AddInput(name, std::move(type))});
  }

  absl::Status Operands(Node* node) {
    RETURN_IF_ERROR(cursor_.Expect("("));
    if (cursor_.Take(")")) return absl::OkStatus();
    do {
      ASSIGN_OR_RETURN(const ValueId operand, Value());
      node->operands.push_back(operand);
    } while (cursor_.Take(","));
    return cursor_.Expect(")");
  }

  absl::Status AttributeList(const OpDef& op, Attributes* attrs) {
    if (!cursor_.Take("{")) return absl::OkStatus();
    std::vector<bool> seen(op.attrs.size());
    do {
      const size_t position = cursor_.Position();
      const absl::string_view name = cursor_.Word();
      size_t i = 0;
      while (i < op.attrs.size() && op.attrs[i].name != name) ++i;
      if (i == op.attrs.size()) {
        return cursor_.ErrorAt(position, Refusal::kTextSyntax,
                               absl::StrCat(op.name, " has no attribute \"", name, "\""));
      }
      if (seen[i]) {
        return cursor_.ErrorAt(position, Refusal::kTextSyntax, absl::StrCat("the attribute ", name, " is set twice"));
      }
      seen[i] = true;
      RETURN_IF_ERROR(cursor_.Expect("="));
      ASSIGN_OR_RETURN(AttrValue value, Attribute(op.attrs[i]));
      attrs->Set(i, std::move(value));
    } while (cursor_.Take(","));
    return cursor_.Expect("}");
  }

  absl::StatusOr<AttrValue> Attribute(const AttrDef& def) {
    const size_t position = cursor_.Position();
    switch (def.kind) {
      case AttrKind::kInt: {
        ASSIGN_OR_RETURN(const int64_t value, cursor_.Integer());
        return AttrValue(value);
      }
      case AttrKind::kInts: {
        ASSIGN_OR_RETURN(std::vector<int64_t> values, Integers());
        return AttrValue(std::move(values));
      }
      case AttrKind::kDims: {
        std::vector<DimExpr> values;
        RETURN_IF_ERROR(List([&]() -> absl::Status {
          ASSIGN_OR_RETURN(DimExpr value, cursor_.Size());
          values.push_back(std::move(value));
          return absl::OkStatus();
        }));
        return AttrValue(std::move(values));
      }
      case AttrKind::kDType: {
        const std::optional<DType> dtype = DTypeFromName(cursor_.Word());
        if (!dtype.has_value()) return cursor_.ErrorAt(position, Refusal::kTextSyntax, "expected a dtype");
        return AttrValue(*dtype);
      }
      case AttrKind::kEnum: {
        const absl::string_view word = cursor_.Word();
        for (size_t i = 0; i < def.enumerators.size(); ++i) {
          if (def.enumerators[i] == word) return AttrValue(static_cast<int64_t>(i));
        }
        return cursor_.ErrorAt(position, Refusal::kTextSyntax, absl::StrCat(def.name, " has no value \"", word, "\""));
      }
      case AttrKind::kType: {
        ASSIGN_OR_RETURN(TensorType type, ParseType(cursor_));
        return AttrValue(std::move(type));
      }
      case AttrKind::kLiteral: {
        ASSIGN_OR_RETURN(Literal literal, ParseLiteral(cursor_));
        return AttrValue(std::make_shared<const Literal>(std::move(literal)));
      }
      case AttrKind::kFlag: {
        const absl::string_view word = cursor_.Word();
        if (word == "true" || word == "false") return AttrValue(word == "true");
        return cursor_.ErrorAt(position, Refusal::kTextSyntax, "expected true or false");
      }
      case AttrKind::kText: {
        ASSIGN_OR_RETURN(std::string text, cursor_.Quoted());
        return AttrValue(std::move(text));
      }
      case AttrKind::kMaybeInt: {
        ASSIGN_OR_RETURN(const int64_t value, cursor_.Integer());
        return AttrValue(std::optional<int64_t>(value));
      }
      case AttrKind::kMaybeReal: {
        double value = 0;
        if (absl::SimpleAtod(cursor_.Number(), &value)) return AttrValue(std::optional<double>(value));
        return cursor_.ErrorAt(position, Refusal::kTextSyntax, "expected a number");
      }
      case AttrKind::kIntLists: {
        std::vector<std::vector<int64_t>> lists;
        RETURN_IF_ERROR(List([&]() -> absl::Status {
          ASSIGN_OR_RETURN(lists.emplace_back(), Integers());
          return absl::OkStatus();
        }));
        return AttrValue(std::move(lists));
      }
    }
    return cursor_.Error("an attribute without a kind");
  }

  absl::StatusOr<std::vector<int64_t>> Integers() {
    std::vector<int64_t> values;
    RETURN_IF_ERROR(List([&]() -> absl::Status {
      ASSIGN_OR_RETURN(const int64_t value, cursor_.Integer());
      values.push_back(value);
      return absl::OkStatus();
    }));
    return values;
  }

  template <typename Element>
  absl::Status List(const Element& element) {
    RETURN_IF_ERROR(cursor_.Expect("["));
    if (cursor_.Take("]")) return absl::OkStatus();
    do {
      RETURN_IF_ERROR(element());
    } while (cursor_.Take(","));
    return cursor_.Expect("]");
  }

  absl::Status ResultTypes(ValueId first, int32_t count) {
    if (!cursor_.Take(":")) return absl::OkStatus();
    for (int32_t i = 0; i < count; ++i) {
      if (i > 0) RETURN_IF_ERROR(cursor_.Expect(","));
      const size_t position = cursor_.Position();
      ASSIGN_OR_RETURN(TensorType type, ParseType(cursor_, /*run_time_sizes=*/true));
      written_.push_back({.value = {first.index + i}, .type = std::move(type), .position = position});
    }
    return absl::OkStatus();
  }

  absl::Status Output() {
    const size_t position = cursor_.Position();
    ASSIGN_OR_RETURN(const std::string name, cursor_.Quoted());
    RETURN_IF_ERROR(CheckNameAt(name, position, /*reference=*/false));
    RETURN_IF_ERROR(cursor_.Expect("="));
    ASSIGN_OR_RETURN(const ValueId value, Value());
    graph_.AddOutput(name, value);
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> Value() {
    RETURN_IF_ERROR(cursor_.Expect("%"));
    const size_t position = cursor_.Position();
    ASSIGN_OR_RETURN(const std::string name, cursor_.Name());
    const auto it = values_.find(name);
    if (it == values_.end()) {
      return cursor_.ErrorAt(position, Refusal::kValueUnknown,
                             absl::StrCat("no input or node before this one is named \"", PrintableName(name), "\""));
    }
    if (!cursor_.Take(":")) return it->second.first;
    ASSIGN_OR_RETURN(const int64_t result, cursor_.Integer());
    if (result < 0 || result >= it->second.count) {
      return cursor_.ErrorAt(position, Refusal::kValueUnknown,
                             absl::StrCat("\"", PrintableName(name), "\" has ", it->second.count, " results"));
    }
    return ValueId{it->second.first.index + static_cast<int32_t>(result)};
  }

  absl::Status CheckNameAt(absl::string_view name, size_t position, bool reference) {
    const absl::Status status = CheckName(name, kMaxNameBytes, reference);
    return status.ok() ? status : cursor_.ErrorAt(position, Refusal::kNameInvalid, status.message());
  }

  absl::Status Define(const std::string& name, size_t position, Results results) {
    if (values_.emplace(name, results).second) return absl::OkStatus();
    return cursor_.ErrorAt(position, Refusal::kNameDuplicate,
                           absl::StrCat("two inputs or nodes have the name \"", PrintableName(name), "\""));
  }

  // Compares the types in the text with the inferred ones.
  absl::Status CheckTypes() {
    if (written_.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(InferTypes(&graph_).status());
    for (const WrittenType& written : written_) {
      const std::string inferred = ToString(graph_.type(written.value));
      if (ToString(written.type) == inferred) continue;
      return cursor_.ErrorAt(written.position, Refusal::kTextSyntax,
                             absl::StrCat("the type is written as ", ToString(written.type), " and is ", inferred));
    }
    return absl::OkStatus();
  }

  TextCursor cursor_;
  const OpRegistry& registry_;
  Graph graph_;
  absl::flat_hash_map<std::string, Results> values_;
  std::vector<WrittenType> written_;
};

}  // namespace

absl::StatusOr<Graph> ParseGraph(absl::string_view text, const OpRegistry& registry) {
  if (text.size() > kMaxGraphTextBytes) {
    return RefuseLimit("graph_text_bytes", kMaxGraphTextBytes, static_cast<int64_t>(text.size()),
                       "bytes of a graph's text");
  }
  return GraphParser(text, registry).Parse();
}

}  // namespace tensord
