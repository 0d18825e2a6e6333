#include "engine/passes/fusion/fusion_groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/ops/core_ops.h"
#include "engine/passes/fusion/fusion_views.h"
#include "engine/passes/fusion/late_nodes.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

bool IsComputed(const Node& node) {
  return (node.op->has(kElementwise) && !node.operands.empty()) || Is(*node.op, CoreOp::kReduce);
}

// The index space of a group.
struct Space {
  int32_t shape = FusionShapes::kScalar;
  ValueId value;                         // a value of that shape
  std::vector<bool> reduced;             // by axis of the shape; empty where nothing is reduced
  int32_t kept = FusionShapes::kScalar;  // the shape without the reduced axes
  bool has_reduced() const { return !reduced.empty(); }
};

// A group while it grows. Groups have depths: along an edge from a group to anything outside it the depth grows, and
// along no edge it falls. So no path leads out of a group and back into it, and two groups of one depth may be joined.
struct Growing {
  int32_t parent = -1;  // the group that it went into
  int32_t depth = 0;
  Space space;
  int32_t num_nodes = 0;
  int32_t num_operands = 0;                        // at most
  int32_t num_stages = 0;                          // reductions on the longest way through it, at most
  int32_t first_depth = -1;                        // the least of the groups that joined it, their only reader
  int32_t first_stages = 0;                        // of those groups
  bool is_read_outside = false;                    // by a node that is in no group
  std::vector<std::pair<int32_t, int32_t>> reads;  // of other groups' values: node, operand
};

// The most nodes of a group that computes its values faster than they are read.
constexpr int32_t kFewNodes = 2;

class Partition {
 public:
  explicit Partition(const Graph& graph)
      : graph_(graph),
        views_(FindFusionViews(graph)),
        deciders_(graph),
        shapes_by_value_(static_cast<size_t>(graph.num_values())),
        group_of_(graph.nodes().size(), -1),
        depths_(graph.nodes().size()),
        stages_(graph.nodes().size()),
        is_output_(static_cast<size_t>(graph.num_values())),
        is_read_(static_cast<size_t>(graph.num_values())) {
    for (const GraphOutput& output : graph.outputs()) is_output_[static_cast<size_t>(output.value.index)] = true;
    for (const Node& node : graph.nodes()) {
      for (ValueId operand : node.operands) is_read_[static_cast<size_t>(operand.index)] = true;
    }
    for (int32_t v = 0; v < graph.num_values(); ++v) {
      shapes_by_value_[static_cast<size_t>(v)] = shapes_.NumberOf(graph.type({v}).shape);
    }
  }

  FusionGroups Run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) Place(static_cast<int32_t>(i));
    JoinOnlyReaders();
    JoinSiblings();
    return Result();
  }

 private:
  const FusionView& ViewOf(ValueId value) const { return views_[static_cast<size_t>(value.index)]; }
  int32_t ShapeOf(ValueId value) const { return shapes_by_value_[static_cast<size_t>(value.index)]; }
  const Node& NodeAt(int32_t node) const { return graph_.nodes()[static_cast<size_t>(node)]; }

  bool IsLeaf(ValueId value) const {
    return !graph_.is_input(value) && IsFusedLeaf(graph_.nodes()[static_cast<size_t>(graph_.producer(value))]);
  }

  int32_t Root(int32_t group) {
    while (groups_[static_cast<size_t>(group)].parent >= 0) {
      int32_t& parent = groups_[static_cast<size_t>(group)].parent;
      const int32_t above = groups_[static_cast<size_t>(parent)].parent;
      if (above >= 0) parent = above;
      group = parent;
    }
    return group;
  }
  Growing& At(int32_t group) { return groups_[static_cast<size_t>(group)]; }

  // Returns the group that computes a value, or -1.
  int32_t GroupOf(ValueId value) {
    if (graph_.is_input(value)) return -1;
    const int32_t group = group_of_[static_cast<size_t>(graph_.producer(value))];
    return group < 0 ? -1 : Root(group);
  }

  int32_t DepthOf(ValueId value) {
    if (graph_.is_input(value)) return 0;
    const int32_t group = GroupOf(value);
    return group >= 0 ? At(group).depth : depths_[static_cast<size_t>(graph_.producer(value))];
  }

  // ---- Levels ----

  // Appends the positions in the space of the axes of a shape; false if the shape is at no level of the space.
  bool AppendPositions(const Space& space, int32_t shape, absl::InlinedVector<int32_t, 4>* positions) const {
    if (shape == space.shape) {
      positions->resize(shapes_.sizes(shape).size());
      std::iota(positions->begin(), positions->end(), 0);
    } else if (space.has_reduced() && shape == space.kept) {
      for (size_t d = 0; d < space.reduced.size(); ++d) {
        if (!space.reduced[d]) positions->push_back(static_cast<int32_t>(d));
      }
    } else {
      return shape == FusionShapes::kScalar;
    }
    return true;
  }

  bool HasLevel(const Space& space, int32_t shape) const {
    return shape == space.shape || shape == FusionShapes::kScalar || (space.has_reduced() && shape == space.kept);
  }

  // Tells whether a computed value can stand for `seen`, the same value with axes added.
  bool IsInPlace(const Space& space, ValueId seen) const {
    const FusionView& view = ViewOf(seen);
    if (!view.is_repeat) return false;
    if (view.base == seen) return HasLevel(space, ShapeOf(seen));
    absl::InlinedVector<int32_t, 4> from, to;
    if (!AppendPositions(space, ShapeOf(view.base), &from) || !AppendPositions(space, ShapeOf(seen), &to)) return false;
    for (size_t i = 0; i < from.size(); ++i) {
      if (to[static_cast<size_t>(view.axes[i])] != from[i]) return false;
    }
    return true;
  }

  // Returns the space that both can run over.
  std::optional<Space> Common(const Space& a, const Space& b) const {
    if (a.has_reduced() && b.has_reduced()) {
      if (a.shape != b.shape || a.reduced != b.reduced) return std::nullopt;
      return a;
    }
    if (b.has_reduced() || (!a.has_reduced() && a.shape == FusionShapes::kScalar)) {
      return HasLevel(b, a.shape) ? std::optional<Space>(b) : std::nullopt;
    }
    return HasLevel(a, b.shape) ? std::optional<Space>(a) : std::nullopt;
  }

  // Returns nothing if the node reduces along no axis, or cannot be at any level.
  std::optional<Space> SpaceOf(const Node& node) {
    if (!Is(*node.op, CoreOp::kReduce)) {
      return Space{.shape = ShapeOf(node.first_result), .value = node.first_result};
    }
    const ValueId operand = node.operands[0];
    Space space{.shape = ShapeOf(operand), .value = operand};
    const SymbolicShape& shape = graph_.type(operand).shape;
    const std::vector<int64_t>& axes = node.attrs.Ints("dimensions");
    FusionShapes::Sizes kept;
    bool reduces = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].size.is(1)) continue;
      const bool is_reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
      if (!is_reduced) kept.push_back(shapes_.sizes(space.shape)[space.reduced.size()]);
      space.reduced.push_back(is_reduced);
      reduces = reduces || is_reduced;
    }
    if (!reduces) return std::nullopt;
    space.kept = shapes_.NumberOf(std::move(kept));
    return space;
  }

  // ---- Growth along edges ----

  void Place(int32_t n) {
    const Node& node = NodeAt(n);
    const std::optional<Space> own = IsComputed(node) ? SpaceOf(node) : std::nullopt;
    int32_t depth = 0;
    bool is_group_deepest = false;
    for (ValueId operand : node.operands) {
      const ValueId source = own.has_value() ? ViewOf(operand).base : operand;
      const int32_t d = DepthOf(source);
      const bool is_group = GroupOf(source) >= 0;
      is_group_deepest = d > depth ? is_group : is_group_deepest || (is_group && d == depth);
      depth = std::max(depth, d);
    }
    const auto await_size = [&](int32_t decider) {
      if (decider == n) return;
      const int32_t d = depths_[static_cast<size_t>(decider)];
      is_group_deepest = is_group_deepest && d <= depth;
      depth = std::max(depth, d);
    };
    for (ValueId operand : node.operands) {
      deciders_.ForEachOnWay(operand, own.has_value() ? ViewOf(operand).base : operand, await_size);
    }
    deciders_.ForEach(graph_.type(node.first_result), await_size);
    if (!own.has_value()) {
      depths_[static_cast<size_t>(n)] = depth + (is_group_deepest ? 1 : 0);
      // A layout op is done by its readers, except for the shapes that it reads.
      const bool is_layout = ViewOf(node.first_result).origin.index != node.first_result.index;
      for (size_t k = is_layout ? 1 : 0; k < node.operands.size(); ++k) MarkReadOutside(node.operands[k]);
      return;
    }
    const bool is_alone = is_group_deepest && ReadsInOrderAlone(node);
    if (is_alone) MarkReadOutside(node.operands[0]);
    int32_t stage = StageAfter(node, depth);
    int32_t group = is_group_deepest && !is_alone && stage <= kMaxFusedStages ? JoinOperands(node, *own, depth) : -1;
    if (group < 0) {
      stage = StageAfter(node, /*depth=*/-1);
      group = static_cast<int32_t>(groups_.size());
      groups_.push_back({.depth = depth + (is_group_deepest ? 1 : 0), .space = *own});
    }
    group_of_[static_cast<size_t>(n)] = group;
    stages_[static_cast<size_t>(n)] = stage;
    At(group).num_stages = std::max(At(group).num_stages, stage);
    ++At(group).num_nodes;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const FusionView& view = ViewOf(node.operands[k]);
      if (view.origin.index != view.base.index) MarkReadOutside(view.base);
      const int32_t source = GroupOf(view.base);
      if (source == group) continue;
      if (source >= 0) At(group).reads.emplace_back(n, static_cast<int32_t>(k));
      if (!IsLeaf(view.base)) ++At(group).num_operands;
    }
  }

  // Returns the reductions on the longest way to a node through the groups of a depth, its own included.
  int32_t StageAfter(const Node& node, int32_t depth) {
    int32_t stage = 0;
    for (ValueId operand : node.operands) {
      const ValueId source = ViewOf(operand).base;
      const int32_t group = GroupOf(source);
      if (group < 0 || At(group).depth != depth) continue;
      stage = std::max(stage, stages_[static_cast<size_t>(graph_.producer(source))]);
    }
    return stage + (Is(*node.op, CoreOp::kReduce) ? 1 : 0);
  }

  // Tells whether a node is a sum along slow axes of a cheap result. By itself it goes through that in the order of
  // memory, while a common kernel writes the result a piece of a row at a time. That costs more than reading it once
  // more. If something else is computed with the sum, there is more to save.
  bool ReadsInOrderAlone(const Node& node) {
    if (!Is(*node.op, CoreOp::kReduce) || is_read_[static_cast<size_t>(node.first_result.index)]) return false;
    const ValueId operand = node.operands[0];
    const int32_t group = GroupOf(operand);
    if (group < 0 || !is_output_[static_cast<size_t>(operand.index)] || At(group).num_nodes > kFewNodes) return false;
    const Space& space = At(group).space;
    const SymbolicShape& shape = graph_.type(operand).shape;
    const auto is_long = [](const Dim& dim) { return !dim.size.is(1); };
    const int64_t fastest = std::find_if(shape.begin(), shape.end(), is_long) - shape.begin();
    const std::vector<int64_t>& axes = node.attrs.Ints("dimensions");
    return !space.has_reduced() && std::find(axes.begin(), axes.end(), fastest) == axes.end();
  }

  // A layout op that is run on its own leads out of the group and may lead anywhere.
  void MarkReadOutside(ValueId value) {
    const int32_t group = GroupOf(ViewOf(value).origin);
    if (group >= 0) At(group).is_read_outside = true;
  }

  // Returns the one group that all operands of that depth can be in, together with the node; -1 if there is none.
  int32_t JoinOperands(const Node& node, const Space& own, int32_t depth) {
    absl::InlinedVector<int32_t, 3> joined;
    Space space = own;
    int32_t nodes = 1, operands = static_cast<int32_t>(node.operands.size());
    for (ValueId operand : node.operands) {
      const int32_t group = GroupOf(ViewOf(operand).base);
      if (group < 0 || At(group).depth != depth) continue;
      if (std::find(joined.begin(), joined.end(), group) != joined.end()) continue;
      std::optional<Space> common = Common(space, At(group).space);
      if (!common.has_value()) return -1;
      space = *std::move(common);
      nodes += At(group).num_nodes;
      operands += At(group).num_operands;
      joined.push_back(group);
    }
    if (nodes > kMaxFusedNodes || operands > kMaxFusedOperands) return -1;
    if (Is(*node.op, CoreOp::kReduce) && !(space.shape == own.shape && space.reduced == own.reduced)) return -1;
    if (!HasLevel(space, ShapeOf(node.first_result))) return -1;
    for (ValueId operand : node.operands) {
      const int32_t group = GroupOf(ViewOf(operand).base);
      const bool is_inside = std::find(joined.begin(), joined.end(), group) != joined.end();
      if (is_inside ? !IsInPlace(space, operand) : !HasLevel(space, ShapeOf(operand))) return -1;
    }
    // Values read through a view before have to be computed in its place now.
    for (size_t j = 1; j < joined.size(); ++j) Absorb(joined[j], joined[0]);
    At(joined[0]).space = std::move(space);
    return joined[0];
  }

  // `from` goes into `into`, whose depth and space are set by the caller.
  void Absorb(int32_t from, int32_t into) {
    Growing& gone = At(from);
    Growing& grown = At(into);
    gone.parent = into;
    grown.num_nodes += gone.num_nodes;
    grown.num_operands += gone.num_operands;
    grown.num_stages = std::max(grown.num_stages, gone.num_stages);
    grown.is_read_outside = grown.is_read_outside || gone.is_read_outside;
    grown.reads.insert(grown.reads.end(), gone.reads.begin(), gone.reads.end());
    gone.reads.clear();
    gone.reads.shrink_to_fit();
  }

  // ---- Growth against edges ----

  // Joins each group that only one other group reads into its reader: no path can lead around it.
  void JoinOnlyReaders() {
    std::vector<int32_t> order;
    for (int32_t g = 0; g < static_cast<int32_t>(groups_.size()); ++g) {
      if (At(g).parent < 0) order.push_back(g);
    }
    std::vector<std::vector<std::pair<int32_t, int32_t>>> readers(groups_.size());  // by group: node, operand
    for (int32_t g : order) {
      for (const auto& [node, operand] : At(g).reads) {
        const int32_t source = GroupOf(ViewOf(NodeAt(node).operands[static_cast<size_t>(operand)]).base);
        if (source >= 0 && source != g) readers[static_cast<size_t>(source)].emplace_back(node, operand);
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return At(a).depth > At(b).depth; });
    for (int32_t g : order) TryJoinReader(g, readers[static_cast<size_t>(g)]);
  }

  void TryJoinReader(int32_t group, absl::Span<const std::pair<int32_t, int32_t>> readers) {
    if (At(group).is_read_outside || readers.empty()) return;
    const int32_t reader = Root(group_of_[static_cast<size_t>(readers[0].first)]);
    if (At(group).num_nodes + At(reader).num_nodes > kMaxFusedNodes ||
        At(group).num_operands + At(reader).num_operands > kMaxFusedOperands) {
      return;
    }
    // Groups come by falling depth; those of one depth run side by side.
    const int32_t beside = At(reader).first_depth == At(group).depth ? At(reader).first_stages : 0;
    const int32_t first_stages = std::max(At(group).num_stages, beside);
    const int32_t num_stages = At(reader).num_stages + first_stages - beside;
    if (num_stages > kMaxFusedStages) return;
    std::optional<Space> space = Common(At(reader).space, At(group).space);
    if (!space.has_value()) return;
    for (const auto& [node, operand] : readers) {
      if (Root(group_of_[static_cast<size_t>(node)]) != reader) return;
      if (!IsInPlace(*space, NodeAt(node).operands[static_cast<size_t>(operand)])) return;
    }
    Absorb(group, reader);
    Growing& grown = At(reader);
    grown.space = *std::move(space);
    grown.num_stages = num_stages;
    grown.first_depth = At(group).depth;
    grown.first_stages = first_stages;
  }

  // Groups of one depth and space that read one tensor whole: it is read once for all of them.
  void JoinSiblings() {
    using Key = std::tuple<int32_t, int32_t, int32_t, int32_t>;  // depth, shape, kept shape, value
    std::map<Key, int32_t> known;
    for (size_t n = 0; n < group_of_.size(); ++n) {
      if (group_of_[n] < 0) continue;
      for (ValueId operand : NodeAt(static_cast<int32_t>(n)).operands) {
        const int32_t group = Root(group_of_[n]);
        const Space& space = At(group).space;
        const ValueId source = ViewOf(operand).base;
        if (source.index != operand.index || space.shape == FusionShapes::kScalar || ShapeOf(source) != space.shape ||
            GroupOf(source) == group) {
          continue;
        }
        const int32_t kept = space.has_reduced() ? space.kept : -1;
        const auto [it, is_new] = known.try_emplace(Key{At(group).depth, space.shape, kept, source.index}, group);
        if (is_new) continue;
        const int32_t sibling = Root(it->second);
        if (sibling == group || !CanJoinSiblings(sibling, group)) continue;
        Absorb(group, sibling);
      }
    }
  }

  bool CanJoinSiblings(int32_t a, int32_t b) {
    const Space &first = At(a).space, &second = At(b).space;
    return At(a).depth == At(b).depth && first.shape == second.shape && first.reduced == second.reduced &&
           At(a).num_nodes + At(b).num_nodes <= kMaxFusedNodes &&
           At(a).num_operands + At(b).num_operands <= kMaxFusedOperands;
  }

  // ---- What became of it ----

  // A single op has a kernel of its own, which does as well unless it reads through a view.
  bool IsWorthIt(const FusionGroup& group) const {
    if (group.nodes.size() > 1) return true;
    for (ValueId operand : NodeAt(group.nodes[0]).operands) {
      if (ViewOf(operand).base.index != operand.index) return true;
    }
    return false;
  }

  FusionGroups Result() {
    FusionGroups result{.group_of = std::vector<int32_t>(group_of_.size(), -1)};
    result.source.reserve(views_.size());
    for (const FusionView& view : views_) result.source.push_back(view.base);
    std::vector<int32_t> numbers(groups_.size(), -1), number_of(group_of_.size(), -1);
    std::vector<FusionGroup> groups;
    for (size_t n = 0; n < group_of_.size(); ++n) {
      if (group_of_[n] < 0) continue;
      const int32_t root = Root(group_of_[n]);
      int32_t& number = numbers[static_cast<size_t>(root)];
      if (number < 0) {
        number = static_cast<int32_t>(groups.size());
        groups.push_back({.space = At(root).space.value, .reduced_axes = ReducedAxes(At(root).space)});
      }
      number_of[n] = number;
      groups[static_cast<size_t>(number)].nodes.push_back(static_cast<int32_t>(n));
    }
    MoveToReaders(graph_, result.source, &number_of, &groups);
    for (FusionGroup& group : groups) {
      if (!IsWorthIt(group)) continue;
      for (int32_t node : group.nodes) {
        result.group_of[static_cast<size_t>(node)] = static_cast<int32_t>(result.groups.size());
      }
      result.groups.push_back(std::move(group));
    }
    return result;
  }

  absl::InlinedVector<int64_t, 4> ReducedAxes(const Space& space) const {
    absl::InlinedVector<int64_t, 4> axes;
    const SymbolicShape& shape = graph_.type(space.value).shape;
    size_t ordinal = 0;
    for (size_t d = 0; d < shape.size() && space.has_reduced(); ++d) {
      if (shape[d].size.is(1)) continue;
      if (space.reduced[ordinal++]) axes.push_back(static_cast<int64_t>(d));
    }
    return axes;
  }

  const Graph& graph_;
  FusionShapes shapes_;
  const std::vector<FusionView> views_;
  const SizeDeciders deciders_;
  std::vector<int32_t> shapes_by_value_;
  std::vector<Growing> groups_;
  std::vector<int32_t> group_of_;  // by node, before Root; -1: none
  std::vector<int32_t> depths_;    // by node that is in no group
  std::vector<int32_t> stages_;    // by node that was placed in a group: as in MicroInstruction
  std::vector<bool> is_output_;    // by value
  std::vector<bool> is_read_;      // by value: some node reads it
};

}  // namespace

SizeDeciders::SizeDeciders(const Graph& graph) : graph_(graph) {
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (Is(*node.op, CoreOp::kDynamicTruncate)) nodes_.emplace(RunTimeSymbol(node.name), static_cast<int32_t>(n));
  }
}

void SizeDeciders::ForEach(const TensorType& type, absl::FunctionRef<void(int32_t)> visit) const {
  if (nodes_.empty()) return;
  for (const Dim& dim : type.shape) {
    if (dim.extent == Extent::kExact) continue;
    dim.size.ForEachLeaf([&](const DimAtom& atom) {
      const auto it = nodes_.find(atom.symbol);
      if (it != nodes_.end()) visit(it->second);
    });
  }
}

void SizeDeciders::ForEachOnWay(ValueId value, ValueId source, absl::FunctionRef<void(int32_t)> visit) const {
  if (nodes_.empty()) return;
  ForEach(graph_.type(value), visit);
  while (!(value == source)) {
    value = graph_.nodes()[static_cast<size_t>(graph_.producer(value))].operands[0];
    ForEach(graph_.type(value), visit);
  }
}

bool IsFusedLeaf(const Node& node) {
  if (Is(*node.op, CoreOp::kIota)) return true;
  return Is(*node.op, CoreOp::kConstant) && node.attrs.GetLiteral("value")->num_elements() == 1;
}

FusionGroups FindFusionGroups(const Graph& graph) { return Partition(graph).Run(); }

}  // namespace tensord
