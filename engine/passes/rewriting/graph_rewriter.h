#ifndef TENSORD_ENGINE_PASSES_REWRITING_GRAPH_REWRITER_H_
#define TENSORD_ENGINE_PASSES_REWRITING_GRAPH_REWRITER_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/ops/core_ops.h"

namespace tensord {

// One sweep over a graph in order, in which a rule may put another value in the place of a node's result. Nodes that
// lose their readers stay, for eliminate_dead_code. Linear; a graph that no rule changes is neither copied nor moved.
// Borrows the graph; confined to one thread.
//
// Values are those of the graph as rewritten so far: all that stands before the node at hand has its final form.
class GraphRewriter {
 public:
  // Returns the value that takes the place of the node's only result, of the very same type: an old one, or one made by
  // Add. Nothing, with nothing added: the node stays. The operands are values of the rewritten graph.
  using Rule = std::function<std::optional<ValueId>(const Node& node, GraphRewriter& graph)>;

  enum Counting { kCountNothing, kCountUses };
  // Returns true if anything changed. Nodes with a body and nodes of several results are not offered to the rule.
  static bool Run(Graph* graph, const Rule& rule, Counting counting = kCountNothing);

  const TensorType& type(ValueId value) const { return current().type(value); }
  // Returns the value that the result of the node at hand will have if the node stays.
  ValueId next_value() const { return {rebuilding_ ? new_.num_values() : next_value_}; }
  // Returns the type of the node at hand.
  const TensorType& result_type() const { return *result_type_; }
  // Returns the node that computes the value; null for an input. Good until the next Add.
  const Node* producer(ValueId value) const {
    const Graph& graph = current();
    return graph.is_input(value) ? nullptr : &graph.nodes()[static_cast<size_t>(graph.producer(value))];
  }
  // Returns the producer if it has that op and no body.
  const Node* producer_if(ValueId value, CoreOp op) const {
    const Node* node = producer(value);
    return node != nullptr && Is(*node->op, op) ? node : nullptr;
  }

  // Returns, with kCountUses, how many operands and outputs are the value, dead ones and those of the node at hand
  // included.
  int32_t uses(ValueId value) const { return uses_[static_cast<size_t>(value.index)]; }

  // Appends a node of one result, or gives the value that the rule puts in its place: a rule need not care about the
  // rewriting of its own results.
  ValueId Add(Node node, TensorType type);
  ValueId Add(CoreOp op, absl::string_view name, Attributes attrs, absl::Span<const ValueId> operands, TensorType type);
  // Adds a reshape in the default order.
  ValueId AddReshape(absl::string_view name, ValueId operand, TensorType type);
  ValueId AddConstant(absl::string_view name, Literal value);

  // Returns the value, where it can take the place of the result of the node at hand: its type is the same.
  std::optional<ValueId> Same(ValueId value) const {
    if (type(value) == *result_type_) return value;
    return std::nullopt;
  }

 private:
  GraphRewriter(Graph* graph, const Rule& rule) : graph_(*graph), rule_(rule) {}

  bool RunOverAll();
  const Graph& current() const { return rebuilding_ ? new_ : graph_; }
  // Sends nodes to new_ from now on: those before the node at hand at once.
  void StartRebuilding();
  // Node i goes to new_ as it is.
  void Move(size_t i);
  void CountUses();
  void SetUses(ValueId value, int32_t uses);
  ValueId& Mapped(ValueId old) { return map_[static_cast<size_t>(old.index)]; }

  Graph& graph_;
  const Rule& rule_;
  size_t next_ = 0;  // the node at hand
  int32_t next_value_ = 0;
  int depth_ = 0;  // of Add within the rule
  const TensorType* result_type_ = nullptr;
  bool rebuilding_ = false;
  Graph new_;
  std::vector<Node> old_nodes_;        // of graph_, once rebuilding
  std::vector<TensorType> old_types_;  // likewise, by value
  std::vector<ValueId> map_;           // new value by old one
  std::vector<int32_t> old_uses_;      // by old value; empty where nobody counts
  std::vector<int32_t> uses_;          // by value
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_REWRITING_GRAPH_REWRITER_H_
