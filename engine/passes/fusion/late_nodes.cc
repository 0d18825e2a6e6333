#include "engine/passes/fusion/late_nodes.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/fusion/fusion_views.h"
#include "engine/passes/rewriting/elementwise.h"

namespace tensord {
namespace {

// The most nodes that move together.
constexpr size_t kMostMoved = 16;

size_t Index(ValueId value) { return static_cast<size_t>(value.index); }

class NodeMover {
 public:
  NodeMover(const Graph& graph, absl::Span<const ValueId> source, std::vector<int32_t>* group_of,
            std::vector<FusionGroup>* groups)
      : graph_(graph),
        source_(source),
        group_of_(*group_of),
        groups_(*groups),
        readers_(static_cast<size_t>(graph.num_values())),
        is_output_(readers_.size()),
        is_seen_otherwise_(readers_.size()) {
    for (const GraphOutput& output : graph.outputs()) is_output_[Index(output.value)] = true;
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      for (ValueId operand : graph.nodes()[n].operands) {
        const ValueId base = source[Index(operand)];
        readers_[Index(base)].push_back(static_cast<int32_t>(n));
        if (!(base == operand)) is_seen_otherwise_[Index(base)] = true;
      }
    }
  }

  void Run() {
    for (int32_t n = static_cast<int32_t>(graph_.nodes().size()); n-- > 0;) {
      if (const std::optional<Move> move = MoveOf(n); move.has_value()) Apply(*move);
    }
  }

 private:
  struct Move {
    int32_t from = -1, to = -1;
    std::vector<int32_t> nodes;
    std::optional<ValueId> added;  // read by the readers' group from now on
    ValueId space;                 // of the group that the nodes leave
  };

  const Node& NodeAt(int32_t n) const { return graph_.nodes()[static_cast<size_t>(n)]; }
  int32_t GroupOf(int32_t n) const { return group_of_[static_cast<size_t>(n)]; }
  FusionGroup& At(int32_t group) { return groups_[static_cast<size_t>(group)]; }
  const TensorType& TypeOf(ValueId value) const { return graph_.type(value); }
  static bool Contains(const std::vector<int32_t>& nodes, int32_t n) {
    return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
  }

  bool IsMovable(int32_t n) const {
    const Node& node = NodeAt(n);
    return GroupOf(n) >= 0 && IsElementwise(node) && !is_output_[Index(node.first_result)] &&
           !is_seen_otherwise_[Index(node.first_result)];
  }

  // Tells whether a value is stored whether the nodes move or not.
  bool IsStored(ValueId value, int32_t group, const std::vector<int32_t>& moved) const {
    if (is_output_[Index(value)]) return true;
    for (int32_t reader : readers_[Index(value)]) {
      if (Contains(moved, reader)) continue;
      const int32_t its = GroupOf(reader);
      // A layout op may be a view that its readers read through.
      const bool is_layout = its < 0 && !(source_[Index(NodeAt(reader).first_result)] == NodeAt(reader).first_result);
      if (its != group && !is_layout) return true;
    }
    return false;
  }

  // Returns the one group that reads the node's result, or -1.
  int32_t ReaderOf(int32_t n) const {
    int32_t group = -1;
    for (int32_t reader : readers_[Index(NodeAt(n).first_result)]) {
      const int32_t its = GroupOf(reader);
      if (its < 0 || (group >= 0 && its != group)) return -1;
      group = its;
    }
    return group;
  }

  std::optional<Move> MoveOf(int32_t n) {
    if (!IsMovable(n)) return std::nullopt;
    Move move{.from = GroupOf(n), .to = ReaderOf(n), .nodes = {n}};
    const ValueId result = NodeAt(n).first_result;
    if (move.to < 0 || move.to == move.from || !(TypeOf(result).shape == TypeOf(At(move.to).space).shape)) {
      return std::nullopt;
    }
    std::vector<ValueId> read;
    std::vector<int32_t> open;  // that have to go along, once all of their readers do
    for (size_t i = 0; i < move.nodes.size(); ++i) {
      if (!AddOperandsOf(move.nodes[i], result, &move, &read, &open)) return std::nullopt;
      AddOpen(&open, &move);
    }
    if (!open.empty()) return std::nullopt;
    for (ValueId value : read) {
      if (ReadsOf(move.to).contains(value.index)) continue;
      const bool is_wide = SizeOf(TypeOf(value).dtype) > SizeOf(TypeOf(result).dtype);
      if (is_wide || (move.added.has_value() && !(*move.added == value))) return std::nullopt;
      move.added = value;
    }
    if (At(move.to).nodes.size() + move.nodes.size() > static_cast<size_t>(kMaxFusedNodes)) return std::nullopt;
    return FindSpace(&move) ? std::make_optional(std::move(move)) : std::nullopt;
  }

  // Adds the nodes to the move all of whose readers are in it.
  void AddOpen(std::vector<int32_t>* open, Move* move) const {
    for (size_t i = 0; i < open->size() && move->nodes.size() < kMostMoved;) {
      const int32_t n = (*open)[i];
      const std::vector<int32_t>& readers = readers_[Index(NodeAt(n).first_result)];
      if (!std::all_of(readers.begin(), readers.end(), [&](int32_t r) { return Contains(move->nodes, r); })) {
        ++i;
        continue;
      }
      move->nodes.push_back(n);
      open->erase(open->begin() + static_cast<ptrdiff_t>(i));
    }
  }

  // Adds the values that a node reads, or the nodes that have to go along; false if the node cannot move.
  bool AddOperandsOf(int32_t n, ValueId result, Move* move, std::vector<ValueId>* read,
                     std::vector<int32_t>* open) const {
    for (ValueId operand : NodeAt(n).operands) {
      const ValueId base = source_[Index(operand)];
      const int32_t producer = graph_.is_input(base) ? -1 : graph_.producer(base);
      if (producer >= 0 && IsFusedLeaf(NodeAt(producer))) continue;
      if (!(base == operand) || !(TypeOf(base).shape == TypeOf(result).shape)) {
        const bool is_moved = producer >= 0 && Contains(move->nodes, producer);
        if (is_moved || !IsSmallBeside(TypeOf(base), TypeOf(result))) return false;
        continue;
      }
      if (producer >= 0 && Contains(move->nodes, producer)) continue;
      const bool is_own = producer >= 0 && GroupOf(producer) == move->from;
      if (!is_own || IsStored(base, move->from, move->nodes)) {
        read->push_back(base);
        continue;
      }
      if (!IsMovable(producer) || open->size() >= kMostMoved) return false;
      if (!Contains(*open, producer)) open->push_back(producer);
    }
    return true;
  }

  // The group that the nodes leave runs over the same elements without them.
  bool FindSpace(Move* move) {
    const FusionGroup& from = At(move->from);
    move->space = from.space;
    const bool is_lost = !graph_.is_input(from.space) && Contains(move->nodes, graph_.producer(from.space));
    if (!is_lost && (graph_.is_input(from.space) || GroupOf(graph_.producer(from.space)) != move->from)) return true;
    for (int32_t n : from.nodes) {
      const ValueId value = NodeAt(n).first_result;
      if (Contains(move->nodes, n) || !(TypeOf(value).shape == TypeOf(from.space).shape)) continue;
      if (is_lost) move->space = value;
      return true;
    }
    return false;
  }

  absl::flat_hash_set<int32_t>& ReadsOf(int32_t group) {
    const auto [it, is_new] = reads_.try_emplace(group);
    if (is_new) {
      for (int32_t n : At(group).nodes) {
        for (ValueId operand : NodeAt(n).operands) it->second.insert(source_[Index(operand)].index);
      }
    }
    return it->second;
  }

  void Apply(const Move& move) {
    if (move.added.has_value()) ReadsOf(move.to).insert(move.added->index);
    reads_.erase(move.from);
    std::vector<int32_t>& left = At(move.from).nodes;
    left.erase(std::remove_if(left.begin(), left.end(), [&](int32_t n) { return Contains(move.nodes, n); }),
               left.end());
    At(move.from).space = move.space;
    std::vector<int32_t>& joined = At(move.to).nodes;
    for (int32_t n : move.nodes) {
      group_of_[static_cast<size_t>(n)] = move.to;
      joined.insert(std::lower_bound(joined.begin(), joined.end(), n), n);
    }
  }

  const Graph& graph_;
  const absl::Span<const ValueId> source_;
  std::vector<int32_t>& group_of_;
  std::vector<FusionGroup>& groups_;
  std::vector<std::vector<int32_t>> readers_;                         // by value: nodes, through views too
  std::vector<bool> is_output_;                                       // by value
  std::vector<bool> is_seen_otherwise_;                               // by value: read through a view
  absl::flat_hash_map<int32_t, absl::flat_hash_set<int32_t>> reads_;  // by group: the values that its nodes read
};

}  // namespace

void MoveToReaders(const Graph& graph, absl::Span<const ValueId> source, std::vector<int32_t>* group_of,
                   std::vector<FusionGroup>* groups) {
  NodeMover(graph, source, group_of, groups).Run();
}

}  // namespace tensord
