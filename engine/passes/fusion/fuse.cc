#include "engine/passes/fusion/fuse.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/fusion/fused_op.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/fusion/fusion_groups.h"

namespace tensord {
namespace {

// The body of one group, with its operands and results. Takes nodes from the old graph that nobody else reads there: if
// the graph is larger than the cache, copying it and dropping the old one later would take twice as long.
class BodyBuilder {
 public:
  BodyBuilder(Graph* graph, const FusionGroups& groups, const std::vector<bool>& is_read_outside,
              std::vector<ValueId>* inside)
      : graph_(*graph), groups_(groups), is_read_outside_(is_read_outside), inside_(*inside) {}

  // Returns the node, with operands and first result of the old graph.
  Node Build(const FusionGroup& group) {
    FindOperands(group);
    Graph body;
    for (ValueId operand : operands_) Remember(operand, body.AddInput(graph_.NameOf(operand), graph_.type(operand)));
    for (int32_t n : group.nodes) {
      const Node& node = graph_.nodes()[static_cast<size_t>(n)];
      for (ValueId operand : node.operands) AddWay(operand, &body);
      AddMember(n, &body);
    }
    AddWay(group.space, &body);
    Node fused{.op = &FusedOp(), .attrs = Attributes(FusedOp().attrs), .num_results = 0};
    for (int32_t n : group.nodes) {
      const Node& node = graph_.nodes()[static_cast<size_t>(n)];
      if (!is_read_outside_[static_cast<size_t>(node.first_result.index)]) continue;
      body.AddOutput(node.name, InBody(node.first_result));
      results_.push_back(node.first_result);
      ++fused.num_results;
      fused.name = node.name;
    }
    fused.attrs.Set("space", int64_t{InBody(group.space).index});
    fused.attrs.Set("reduced_axes", std::vector<int64_t>(group.reduced_axes.begin(), group.reduced_axes.end()));
    fused.operands.assign(operands_.begin(), operands_.end());
    fused.body = std::make_shared<const Graph>(std::move(body));
    for (ValueId value : remembered_) inside_[static_cast<size_t>(value.index)] = {};
    return fused;
  }

  const std::vector<ValueId>& results() const { return results_; }

 private:
  ValueId InBody(ValueId value) const { return inside_[static_cast<size_t>(value.index)]; }

  void Remember(ValueId value, ValueId in_body) {
    inside_[static_cast<size_t>(value.index)] = in_body;
    remembered_.push_back(value);
  }

  const Node* ProducerOf(ValueId value) const {
    return graph_.is_input(value) ? nullptr : &graph_.nodes()[static_cast<size_t>(graph_.producer(value))];
  }

  ValueId SourceOf(ValueId value) const { return groups_.source[static_cast<size_t>(value.index)]; }

  // Finds the operands first: a graph's inputs come before its nodes.
  void FindOperands(const FusionGroup& group) {
    const int32_t own = groups_.group_of[static_cast<size_t>(group.nodes[0])];
    const auto read = [&](ValueId operand) {
      const ValueId source = SourceOf(operand);
      const Node* producer = ProducerOf(source);
      if (producer != nullptr &&
          (IsFusedLeaf(*producer) || groups_.group_of[static_cast<size_t>(graph_.producer(source))] == own)) {
        return;
      }
      ValueId& mark = inside_[static_cast<size_t>(source.index)];
      if (mark.index >= 0) return;
      mark = {0};
      operands_.push_back(source);
    };
    for (int32_t n : group.nodes) {
      for (ValueId operand : graph_.nodes()[static_cast<size_t>(n)].operands) read(operand);
    }
    for (ValueId operand : operands_) inside_[static_cast<size_t>(operand.index)] = {};
  }

  // Adds the value, and the nodes on the way to it from its source.
  void AddWay(ValueId value, Graph* body) {
    std::vector<const Node*> way;
    while (InBody(value).index < 0) {
      const Node* node = ProducerOf(value);
      way.push_back(node);
      if (IsFusedLeaf(*node)) break;
      value = node->operands[0];
    }
    for (auto it = way.rbegin(); it != way.rend(); ++it) AddCopy(**it, body);
  }

  // A node that is this group's alone.
  void AddMember(int32_t n, Graph* body) {
    const Node& node = graph_.nodes()[static_cast<size_t>(n)];
    const ValueId value = node.first_result;
    if (!(SourceOf(value) == value) || node.op->has(kShapeSources)) return AddCopy(node, body);
    if (InBody(value).index >= 0) return;
    Node member{.name = node.name, .op = node.op, .attrs = graph_.TakeAttrs(n)};
    for (ValueId operand : node.operands) member.operands.push_back(InBody(operand));
    const ValueId result = body->AddNode(std::move(member));
    body->set_type(result,
                   is_read_outside_[static_cast<size_t>(value.index)] ? graph_.type(value) : graph_.TakeType(value));
    Remember(value, result);
  }

  void AddCopy(const Node& node, Graph* body) {
    if (InBody(node.first_result).index >= 0) return;
    Node copy{.name = node.name, .op = node.op, .attrs = node.attrs};
    const size_t count = node.op->has(kShapeSources)
                             ? std::min(node.operands.size(), static_cast<size_t>(node.op->max_operands))
                             : node.operands.size();
    for (size_t k = 0; k < count; ++k) copy.operands.push_back(InBody(node.operands[k]));
    const TensorType& type = graph_.type(node.first_result);
    if (node.op->has(kShapeSources)) {  // sizes as they turned out, with nothing to read them from
      std::vector<DimExpr> shape;
      for (const Dim& dim : type.shape) shape.push_back(dim.size);
      copy.attrs.Set("shape", std::move(shape));
    }
    const ValueId result = body->AddNode(std::move(copy));
    body->set_type(result, type);
    Remember(node.first_result, result);
  }

  Graph& graph_;
  const FusionGroups& groups_;
  const std::vector<bool>& is_read_outside_;
  std::vector<ValueId>& inside_;  // by old value: the body's; all unset between two groups
  std::vector<ValueId> operands_;
  std::vector<ValueId> results_;
  std::vector<ValueId> remembered_;
};

class GroupFuser {
 public:
  // Takes parts of the graph.
  GroupFuser(Graph* graph, const FusionGroups& groups)
      : old_(*graph),
        groups_(groups),
        deciders_(old_),
        new_(Graph::EmptyLike(old_)),
        is_read_outside_(static_cast<size_t>(old_.num_values())),
        is_wanted_(static_cast<size_t>(old_.num_values())),
        to_new_(static_cast<size_t>(old_.num_values())),
        inside_(static_cast<size_t>(old_.num_values())) {}

  absl::StatusOr<Graph> Run() {
    FindReaders();
    for (const GraphInput& input : old_.inputs()) {
      const ValueId value = new_.AddInput(input.name, input.type);
      to_new_[static_cast<size_t>(value.index)] = value;
    }
    // A group stands where its last node stood, unless something before needs it.
    std::vector<int32_t> left(groups_.groups.size());
    for (size_t g = 0; g < left.size(); ++g) left[g] = static_cast<int32_t>(groups_.groups[g].nodes.size());
    for (size_t n = 0; n < old_.nodes().size(); ++n) {
      const int32_t group = groups_.group_of[n];
      if (group >= 0 && --left[static_cast<size_t>(group)] > 0) continue;
      if (IsWanted(static_cast<int32_t>(n))) RETURN_IF_ERROR(Emit(static_cast<int32_t>(n)));
    }
    for (const GraphOutput& output : old_.outputs()) new_.AddOutput(output.name, New(output.value));
    return std::move(new_);
  }

 private:
  ValueId New(ValueId old) const { return to_new_[static_cast<size_t>(old.index)]; }

  int32_t GroupOf(ValueId value) const {
    return old_.is_input(value) ? -1 : groups_.group_of[static_cast<size_t>(old_.producer(value))];
  }

  bool IsLeaf(ValueId value) const {
    return !old_.is_input(value) && IsFusedLeaf(old_.nodes()[static_cast<size_t>(old_.producer(value))]);
  }

  // Finds the nodes that are still to be run, from the last to the first, and the values that leave a group.
  void FindReaders() {
    const auto want = [&](ValueId value) {
      is_wanted_[static_cast<size_t>(value.index)] = true;
      is_read_outside_[static_cast<size_t>(value.index)] = true;
    };
    // A node that decides a size of a value may be needed for that alone.
    const auto want_decider = [&](int32_t decider) {
      is_wanted_[static_cast<size_t>(old_.nodes()[static_cast<size_t>(decider)].first_result.index)] = true;
    };
    for (const GraphOutput& output : old_.outputs()) want(output.value);
    for (size_t n = old_.nodes().size(); n-- > 0;) {
      const Node& node = old_.nodes()[n];
      const int32_t group = groups_.group_of[n];
      if (group >= 0) {
        for (ValueId operand : node.operands) {
          const ValueId source = groups_.source[static_cast<size_t>(operand.index)];
          if (GroupOf(source) != group && !IsLeaf(source)) want(source);
          deciders_.ForEachOnWay(operand, source, want_decider);
        }
        deciders_.ForEach(old_.type(node.first_result), want_decider);
        continue;
      }
      bool is_live = false;
      for (int32_t r = 0; r < node.num_results; ++r) {
        is_live = is_live || is_wanted_[static_cast<size_t>(node.first_result.index + r)];
      }
      if (!is_live) continue;
      is_wanted_[static_cast<size_t>(node.first_result.index)] = true;
      for (ValueId operand : node.operands) want(operand);
      deciders_.ForEach(old_.type(node.first_result), want_decider);
    }
  }

  bool IsWanted(int32_t n) const {
    const auto is_wanted = [&](int32_t node) {
      return is_wanted_[static_cast<size_t>(old_.nodes()[static_cast<size_t>(node)].first_result.index)];
    };
    const int32_t group = groups_.group_of[static_cast<size_t>(n)];
    if (group < 0) return is_wanted(n);
    const std::vector<int32_t>& nodes = groups_.groups[static_cast<size_t>(group)].nodes;
    return std::any_of(nodes.begin(), nodes.end(), is_wanted);
  }

  // Emits a unit, a group or a node that is in none: its values, and its operands from outside.
  absl::Status Emit(int32_t first) {
    // Depth first, with a stack of our own: a graph may be deeper than the thread's stack.
    std::vector<int32_t> stack = {first};
    while (!stack.empty()) {
      const int32_t n = stack.back();
      if (IsEmitted(n)) {
        stack.pop_back();
        continue;
      }
      const size_t before = stack.size();
      ForEachOperand(n, [&](ValueId operand) {
        if (!old_.is_input(operand) && !IsEmitted(old_.producer(operand))) stack.push_back(old_.producer(operand));
      });
      if (stack.size() > before) {
        const int32_t group = groups_.group_of[static_cast<size_t>(n)];
        std::vector<bool>& waiting = group < 0 ? waiting_nodes_ : waiting_groups_;
        const size_t unit = static_cast<size_t>(group < 0 ? n : group);
        if (waiting[unit]) return Refuse(Refusal::kInternal, "fusion made a cycle; disable the pass fuse");
        waiting[unit] = true;
        continue;
      }
      stack.pop_back();
      EmitUnit(n);
    }
    return absl::OkStatus();
  }

  bool IsEmitted(int32_t n) const {
    const int32_t group = groups_.group_of[static_cast<size_t>(n)];
    if (group >= 0) return emitted_groups_[static_cast<size_t>(group)];
    return New(old_.nodes()[static_cast<size_t>(n)].first_result).index >= 0;
  }

  template <typename Visit>
  void ForEachOperand(int32_t n, const Visit& visit) const {
    const int32_t group = groups_.group_of[static_cast<size_t>(n)];
    const auto await_size = [&](int32_t decider) {
      if (decider != n) visit(old_.nodes()[static_cast<size_t>(decider)].first_result);
    };
    if (group < 0) {
      const Node& node = old_.nodes()[static_cast<size_t>(n)];
      deciders_.ForEach(old_.type(node.first_result), await_size);
      for (ValueId operand : node.operands) visit(operand);
      return;
    }
    for (int32_t member : groups_.groups[static_cast<size_t>(group)].nodes) {
      const Node& node = old_.nodes()[static_cast<size_t>(member)];
      deciders_.ForEach(old_.type(node.first_result), await_size);
      for (ValueId operand : node.operands) {
        deciders_.ForEachOnWay(operand, groups_.source[static_cast<size_t>(operand.index)], await_size);
        const ValueId source = groups_.source[static_cast<size_t>(operand.index)];
        if (GroupOf(source) != group && !IsLeaf(source)) visit(source);
      }
    }
  }

  // Tells whether a group may take the node along, or read past it. Constants taken along stand in their attributes.
  bool MayBeCopied(const Node& node) const {
    const ValueId value = node.first_result;
    return !(groups_.source[static_cast<size_t>(value.index)] == value) || Is(*node.op, CoreOp::kConstant) ||
           IsFusedLeaf(node);
  }

  void EmitUnit(int32_t n) {
    const int32_t group = groups_.group_of[static_cast<size_t>(n)];
    Node node;
    std::vector<ValueId> results;
    if (group >= 0) {
      emitted_groups_[static_cast<size_t>(group)] = true;
      BodyBuilder builder(&old_, groups_, is_read_outside_, &inside_);
      node = builder.Build(groups_.groups[static_cast<size_t>(group)]);
      results = builder.results();
    } else {
      const Node& old = old_.nodes()[static_cast<size_t>(n)];
      node = {.name = old.name,
              .op = old.op,
              .attrs = MayBeCopied(old) ? old.attrs : old_.TakeAttrs(n),
              .operands = old.operands,
              .first_result = old.first_result,
              .num_results = old.num_results,
              .body = old.body};
      for (int32_t r = 0; r < node.num_results; ++r) results.push_back({node.first_result.index + r});
    }
    for (ValueId& operand : node.operands) operand = New(operand);
    const ValueId first = new_.AddNode(std::move(node));
    for (size_t r = 0; r < results.size(); ++r) {
      const ValueId value{first.index + static_cast<int32_t>(r)};
      to_new_[static_cast<size_t>(results[r].index)] = value;
      new_.set_type(value, old_.type(results[r]));
    }
  }

  Graph& old_;
  const FusionGroups& groups_;
  const SizeDeciders deciders_;
  Graph new_;
  std::vector<bool> is_read_outside_;  // by old value: outside of its group
  std::vector<bool> is_wanted_;        // by old value: something that is run reads it
  std::vector<ValueId> to_new_;
  std::vector<ValueId> inside_;
  std::vector<bool> emitted_groups_ = std::vector<bool>(groups_.groups.size());
  std::vector<bool> waiting_groups_ = std::vector<bool>(groups_.groups.size());
  std::vector<bool> waiting_nodes_ = std::vector<bool>(old_.nodes().size());
};

}  // namespace

absl::StatusOr<bool> Fuse(Graph* graph, const PassOptions& options) {
  if (!options.fuses) return false;
  const FusionGroups groups = FindFusionGroups(*graph);
  if (groups.groups.empty()) return false;
  ASSIGN_OR_RETURN(Graph fused, GroupFuser(graph, groups).Run());
  *graph = std::move(fused);
  return true;
}

}  // namespace tensord
