#include "engine/passes/algebra/eliminate_common_subexpressions.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {
namespace {

// An attribute's value, for a hash.
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

// Tells whether the node at hand, of that type, equals the node of `computed`.
bool IsSame(const GraphRewriter& graph, const Node& node, ValueId computed) {
  const Node& other = *graph.producer(computed);
  if (node.op != other.op) return false;
  const bool same_operands =
      node.op->has(kCommutative) ? OperandsOf(node) == OperandsOf(other) : node.operands == other.operands;
  return same_operands && SameAttributes(node.attrs, other.attrs) && graph.type(computed) == graph.result_type();
}

// A value that was computed, by its node's hash.
struct Computed {
  ValueId value;
  size_t hash = 0;
};

// The search for a node equal to the one at hand.
struct Wanted {
  const Node& node;
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
    return computed.hash == wanted.hash && IsSame(*graph, wanted.node, computed.value);
  }
  bool operator()(const Wanted& wanted, const Computed& computed) const { return (*this)(computed, wanted); }
};

// The nodes before the one at hand. Equal ones have the same latest operand: the first few readers of each value are
// looked at one by one, and are near in a large graph, where a table of all nodes is in no cache. The others of a value
// that many read are found by hash, and so are nodes without operands.
class ComputedNodes {
 public:
  ComputedNodes(const GraphRewriter& graph, int32_t num_values)
      : graph_(graph), places_(static_cast<size_t>(num_values)), by_hash_(0, ComputedHash(), ComputedEqual{&graph}) {}

  // Returns the value of a node that is equal to the one at hand. If there is none, remembers the node.
  std::optional<ValueId> FindOrAdd(const Node& node) {
    if (node.operands.empty()) return FindOrAddByHash(node);
    Place& latest = places_[At(*std::max_element(node.operands.begin(), node.operands.end(), IsBefore))];
    for (ValueId reader = latest.first_reader; reader.index >= 0; reader = places_[At(reader)].next_reader) {
      if (IsSame(graph_, node, reader)) return reader;
    }
    if (latest.num_readers == kFewReaders) return FindOrAddByHash(node);
    ++latest.num_readers;
    const ValueId value = graph_.next_value();
    places_[At(value)].next_reader = std::exchange(latest.first_reader, value);
    return std::nullopt;
  }

 private:
  static constexpr int32_t kFewReaders = 8;  // that are compared one by one: with more, a hash costs less

  struct Place {
    ValueId first_reader;  // -1: none, as next_reader
    int32_t num_readers = 0;
    ValueId next_reader;  // of the value that this one's list belongs to
  };

  static size_t At(ValueId value) { return static_cast<size_t>(value.index); }
  static bool IsBefore(ValueId a, ValueId b) { return a.index < b.index; }

  std::optional<ValueId> FindOrAddByHash(const Node& node) {
    const Wanted wanted = {.node = node, .hash = HashOf(node)};
    if (const auto it = by_hash_.find(wanted); it != by_hash_.end()) return it->value;
    by_hash_.insert({.value = graph_.next_value(), .hash = wanted.hash});
    return std::nullopt;
  }

  const GraphRewriter& graph_;
  std::vector<Place> places_;  // by value
  absl::flat_hash_set<Computed, ComputedHash, ComputedEqual> by_hash_;
};

}  // namespace

absl::StatusOr<bool> EliminateCommonSubexpressions(Graph* graph, const PassOptions&) {
  std::optional<ComputedNodes> computed;
  const int32_t num_values = graph->num_values();
  return GraphRewriter::Run(graph, [&](const Node& node, GraphRewriter& rewriter) -> std::optional<ValueId> {
    if (!computed.has_value()) computed.emplace(rewriter, num_values);
    if (Is(*node.op, CoreOp::kDynamicTruncate) || Is(*node.op, CoreOp::kOptimizationBarrier)) return std::nullopt;
    return computed->FindOrAdd(node);
  });
}

}  // namespace tensord
