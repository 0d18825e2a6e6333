#include "engine/ir/canonical.h"

#include <cstdint>
#include <optional>
#include <variant>

#include "absl/base/casts.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord {
namespace {

// Every string and list carries its length and every choice its number, so no two graphs share their bytes.
class CanonicalWriter {
 public:
  std::string Write(const Graph& graph) && {
    Append(absl::string_view("tensord graph 1"));
    Append(static_cast<uint64_t>(graph.algebra()));
    Append(uint64_t{graph.inputs().size()});
    for (const GraphInput& input : graph.inputs()) Append(input.type);
    Append(uint64_t{graph.nodes().size()});
    for (const Node& node : graph.nodes()) Append(node);
    Append(uint64_t{graph.outputs().size()});
    for (const GraphOutput& output : graph.outputs()) {
      Append(absl::string_view(output.name));
      Append(output.value);
    }
    return std::move(bytes_);
  }

 private:
  // Seven bits a byte, the low ones first.
  void Append(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  // Small magnitudes become small numbers: 0, -1, 1, -2, ….
  void Append(int64_t value) { Append(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)); }
  void Append(absl::string_view text) {
    Append(uint64_t{text.size()});
    bytes_.append(text.data(), text.size());
  }
  void Append(ValueId value) { Append(int64_t{value.index}); }
  void Append(DType dtype) { Append(static_cast<uint64_t>(dtype)); }

  template <typename T>
  void Append(const std::vector<T>& list) {
    Append(uint64_t{list.size()});
    for (const T& element : list) Append(element);
  }

  void Append(const DimAtom& atom) {
    Append(static_cast<uint64_t>(atom.kind));
    switch (atom.kind) {
      case DimAtom::Kind::kSymbol:
        return Append(absl::string_view(atom.symbol));
      case DimAtom::Kind::kOperandAxis:
        Append(atom.operand);
        return Append(atom.axis);
      case DimAtom::Kind::kFloorDivide:
      case DimAtom::Kind::kMinimum:
      case DimAtom::Kind::kMaximum:
        return Append(atom.args);
    }
  }
  void Append(const DimTerm& term) {
    Append(term.coefficient);
    Append(term.atoms);
  }
  void Append(const DimExpr& expr) {
    Append(expr.constant());
    Append(expr.terms());
  }

  void Append(const TensorType& type) {
    Append(type.dtype);
    Append(uint64_t{type.shape.size()});
    for (const Dim& dim : type.shape) {
      Append(static_cast<uint64_t>(dim.extent));
      Append(dim.size);
    }
  }

  void Append(const SharedType& type) { Append(*type); }

  void Append(bool flag) { Append(uint64_t{flag}); }
  void Append(double number) { Append(absl::bit_cast<uint64_t>(number)); }
  template <typename T>
  void Append(const std::optional<T>& value) {
    Append(value.has_value());
    if (value.has_value()) Append(*value);
  }

  void Append(const LiteralPtr& literal) {
    Append(literal != nullptr);
    if (literal == nullptr) return;
    Append(literal->dtype());
    Append(uint64_t{literal->shape().size()});
    for (int64_t size : literal->shape()) Append(size);
    Append(literal->bytes());
  }

  // Appends all attributes of the wire, and then, by name, the engine's own ones that are set.
  void AppendAttributes(const Attributes& attrs) {
    const absl::Span<const AttrDef> schema = attrs.schema();
    uint64_t written = 0;
    for (size_t i = 0; i < schema.size(); ++i) {
      written += !schema[i].engine_only || !IsUnset(schema[i].kind, attrs.at(i));
    }
    Append(written);
    for (const bool engine_only : {false, true}) {
      for (size_t i = 0; i < schema.size(); ++i) {
        const AttrValue& value = attrs.at(i);
        if (schema[i].engine_only != engine_only || (engine_only && IsUnset(schema[i].kind, value))) continue;
        if (engine_only) Append(schema[i].name);
        Append(uint64_t{value.index()});
        std::visit([this](const auto& v) { Append(v); }, value);
      }
    }
  }

  void Append(const Node& node) {
    Append(node.op->family);
    Append(node.op->name);
    AppendAttributes(node.attrs);
    Append(uint64_t{node.operands.size()});
    for (ValueId operand : node.operands) Append(operand);
    Append(int64_t{node.num_results});
    if (node.body != nullptr) Append(absl::string_view(CanonicalWriter().Write(*node.body)));
  }

  std::string bytes_;
};

}  // namespace

std::string CanonicalBytes(const Graph& graph) { return CanonicalWriter().Write(graph); }

}  // namespace tensord
