#include "engine/passes/eliminate_common_subexpressions.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "engine/passes/graph_rewriter.h"

namespace tensord {
namespace {

// What an attribute is, for a hash.
struct HashedExpr {
  const DimExpr& expr;
  template <typename H>
  friend H AbslHashValue(H h, const HashedExpr& e) {
    h = H::combine(std::move(h), e.expr.constant());
    if (e.expr.is_constant()) return h;
    for (const DimTerm& term : e.expr.terms()) {
      h = H::combine(std::move(h), term.coefficient);
      for (const DimAtom& atom : term.atoms) {
        h = H::combine(std::move(h), atom.kind, atom.symbol, atom.operand, atom.axis);
        for (const DimExpr& arg : atom.args) h = H::combine(std::move(h), HashedExpr{arg});
      }
    }
    return h;
  }
};

struct HashedValue {
  const AttrValue& value;
  template <typename H>
  friend H AbslHashValue(H h, const HashedValue& v) {
    return std::visit([&](const auto& x) { return Combine(std::move(h), x); }, v.value);
  }
  template <typename H, typename T>
  static H Combine(H h, const T& x) {
    return H::combine(std::move(h), x);
  }
  template <typename H>
  static H Combine(H h, const std::vector<DimExpr>& dims) {
    for (const DimExpr& dim : dims) h = H::combine(std::move(h), HashedExpr{dim});
    return H::combine(std::move(h), dims.size());
  }
  template <typename H>
  static H Combine(H h, const SharedType& type) {
    h = H::combine(std::move(h), type->dtype);
    for (const Dim& dim : type->shape) h = H::combine(std::move(h), HashedExpr{dim.size});
    return H::combine(std::move(h), type->shape.size());
  }
  template <typename H>
  static H Combine(H h, const LiteralPtr& literal) {
    return H::combine(std::move(h), literal->dtype(), literal->shape(), literal->bytes());
  }
};

bool SameAttribute(const AttrValue& a, const AttrValue& b) {
  const auto* literal = std::get_if<LiteralPtr>(&a);
  if (literal == nullptr) return a == b;
  const LiteralPtr& other = std::get<LiteralPtr>(b);
  return *literal == other || **literal == *other;
}

bool SameAttributes(const Attributes& a, const Attributes& b) {
  if (a.IsSameAs(b)) return true;
  for (size_t i = 0; i < a.schema().size(); ++i) {
    if (!SameAttribute(a.at(i), b.at(i))) return false;
  }
  return true;
}

using Operands = absl::InlinedVector<int32_t, 3>;

// Operands in an order that does not depend on how a commutative op was written.
Operands OperandsOf(const Node& node) {
  Operands operands;
  for (ValueId operand : node.operands) operands.push_back(operand.index);
  if (node.op->has(kCommutative)) std::sort(operands.begin(), operands.end());
  return operands;
}

size_t HashOf(const Node& node) {
  size_t hash = absl::HashOf(node.op, OperandsOf(node));
  for (size_t i = 0; i < node.attrs.schema().size(); ++i) hash = absl::HashOf(hash, HashedValue{node.attrs.at(i)});
  return hash;
}

// A value that was computed, by its node's hash.
struct Computed {
  ValueId value;
  size_t hash = 0;
};

// What is looked for: equal nodes with equal types.
struct Wanted {
  const Node& node;
  const TensorType& type;
  size_t hash = 0;
};

struct ComputedHash {
  using is_transparent = void;
  template <typename T>
  size_t operator()(const T& entry) const {
    return entry.hash;
  }
};

struct ComputedEqual {
  using is_transparent = void;
  const GraphRewriter* graph = nullptr;

  bool operator()(const Computed& a, const Computed& b) const { return a.value == b.value; }
  bool operator()(const Computed& computed, const Wanted& wanted) const {
    if (computed.hash != wanted.hash) return false;
    const Node& node = *graph->producer(computed.value);
    return node.op == wanted.node.op && OperandsOf(node) == OperandsOf(wanted.node) &&
           SameAttributes(node.attrs, wanted.node.attrs) && graph->type(computed.value) == wanted.type;
  }
  bool operator()(const Wanted& wanted, const Computed& computed) const { return (*this)(computed, wanted); }
};

}  // namespace

absl::StatusOr<bool> EliminateCommonSubexpressions(Graph* graph, const PassOptions&) {
  absl::flat_hash_set<Computed, ComputedHash, ComputedEqual> computed;
  return GraphRewriter::Run(graph, [&](const Node& node, GraphRewriter& rewriter) -> std::optional<ValueId> {
    if (computed.empty()) {
      computed = decltype(computed)(2 * graph->nodes().size(), ComputedHash(), ComputedEqual{&rewriter});
    }
    if (Is(*node.op, CoreOp::kDynamicTruncate)) return std::nullopt;
    const Wanted wanted = {.node = node, .type = rewriter.result_type(), .hash = HashOf(node)};
    if (const auto it = computed.find(wanted); it != computed.end()) return it->value;
    computed.insert({.value = rewriter.next_value(), .hash = wanted.hash});
    return std::nullopt;
  });
}

}  // namespace tensord
