#include "engine/passes/fusion/repeat_for_reductions.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/base/stop_signal.h"
#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/fusion/fusion_groups.h"
#include "engine/passes/fusion/fusion_views.h"
#include "engine/passes/rewriting/elementwise.h"

namespace tensord {
namespace {

// The most ops that are repeated for one reduction.
constexpr size_t kMostOps = 16;
// Ops of an element that take as long as reading a byte.
constexpr int64_t kOpsOfAByte = 2;
// Bytes read that take as long as writing one.
constexpr int64_t kReadsOfAWrite = 2;
// Bytes that count for one of a value that its kernel would not store otherwise.
constexpr int64_t kBytesOfAStoredByte = 3;

using Axes = std::vector<int64_t>;

size_t ValueIndex(ValueId value) { return static_cast<size_t>(value.index); }

Axes AxesOf(const Node& reduce) {
  Axes axes = reduce.attrs.Ints("dimensions");
  std::sort(axes.begin(), axes.end());
  return axes;
}

// The elementwise values of one shape that hang together, and the axes along which they are reduced.
struct Cluster {
  std::set<Axes> axes;
  Axes first;
  std::set<Axes> coming_back;  // of reductions whose results the cluster reads
};

// The reductions of a graph that shall compute their operands for themselves.
class Search {
 public:
  explicit Search(const Graph& graph)
      : graph_(graph),
        parents_(static_cast<size_t>(graph.num_values())),
        is_stored_(static_cast<size_t>(graph.num_values())),
        origins_(static_cast<size_t>(graph.num_values()), -1) {
    std::iota(parents_.begin(), parents_.end(), 0);
    for (const GraphOutput& output : graph.outputs()) is_stored_[ValueIndex(output.value)] = true;
    for (const Node& node : graph.nodes()) Connect(node);
    for (size_t i = 0; i < graph.nodes().size(); ++i) Follow(static_cast<int32_t>(i));
  }

  // Returns the ops to repeat for a reduction, in the graph's order; none if it reads what is there.
  std::vector<int32_t> OpsToRepeat(const Node& reduce) {
    if (!Is(*reduce.op, CoreOp::kReduce) || graph_.is_input(reduce.operands[0])) return {};
    const Cluster& cluster = clusters_[Root(reduce.operands[0])];
    const Axes axes = AxesOf(reduce);
    if (!IsApart(cluster, axes)) return {};
    const std::set<Axes>& all = axes_by_value_.at(reduce.operands[0].index);
    return CheapOps(reduce.operands[0],
                    std::count_if(all.begin(), all.end(), [&](const Axes& a) { return IsApart(cluster, a); }));
  }

 private:
  int32_t Root(ValueId value) {
    int32_t root = value.index;
    while (parents_[static_cast<size_t>(root)] != root) {
      int32_t& parent = parents_[static_cast<size_t>(root)];
      parent = parents_[static_cast<size_t>(parent)];
      root = parent;
    }
    return root;
  }

  void Connect(const Node& node) {
    if (!IsElementwise(node)) {
      if (Is(*node.op, CoreOp::kReduce)) return;
      for (const ValueId operand : node.operands) is_stored_[ValueIndex(operand)] = true;
      return;
    }
    for (const ValueId operand : node.operands) {
      if (graph_.is_input(operand) || graph_.type(operand).shape != graph_.type(node.first_result).shape) continue;
      if (!IsElementwise(Producer(operand))) continue;
      parents_[static_cast<size_t>(Root(operand))] = Root(node.first_result);
    }
  }

  // Notes reductions of clusters, and where their results come back.
  void Follow(int32_t index) {
    const Node& node = graph_.nodes()[static_cast<size_t>(index)];
    if (Is(*node.op, CoreOp::kReduce)) {
      Cluster& cluster = clusters_[Root(node.operands[0])];
      Axes axes = AxesOf(node);
      if (cluster.axes.empty()) cluster.first = axes;
      axes_by_value_[node.operands[0].index].insert(axes);
      cluster.axes.insert(std::move(axes));
      origins_[ValueIndex(node.first_result)] = index;
      return;
    }
    const bool is_view = Is(*node.op, CoreOp::kBroadcastInDim) || Is(*node.op, CoreOp::kReshape);
    if (!IsElementwise(node) && !is_view) return;
    for (const ValueId operand : node.operands) {
      const int32_t origin = origins_[ValueIndex(operand)];
      if (origin < 0) continue;
      const Node& reduce = graph_.nodes()[static_cast<size_t>(origin)];
      const int32_t root = Root(reduce.operands[0]);
      if (IsElementwise(node) && Root(node.first_result) == root) {
        clusters_[root].coming_back.insert(AxesOf(reduce));
      } else {
        origins_[ValueIndex(node.first_result)] = origin;
      }
    }
  }

  // Returns the axes of the kernel that computes the cluster.
  static const Axes& MainAxes(const Cluster& cluster) {
    return cluster.coming_back.empty() ? cluster.first : *cluster.coming_back.begin();
  }

  // Tells whether a reduction along these axes has a kernel of its own.
  static bool IsApart(const Cluster& cluster, const Axes& axes) {
    return cluster.axes.size() > 1 && axes != MainAxes(cluster) && !cluster.coming_back.contains(axes);
  }

  const Node& Producer(ValueId value) const { return graph_.nodes()[static_cast<size_t>(graph_.producer(value))]; }

  // `kernels` compute the value for themselves, so that one write and a read for each of them are saved.
  std::vector<int32_t> CheapOps(ValueId root, int64_t kernels) const {
    if (!IsElementwise(Producer(root))) return {};
    std::set<int32_t> ops, leaves;
    std::vector<ValueId> open = {root};
    int64_t read = 0;
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (graph_.type(value).rank() == 0) continue;
      if (!graph_.is_input(value) && IsElementwise(Producer(value)) && IsCheap(*Producer(value).op)) {
        const Node& node = Producer(value);
        if (!ops.insert(graph_.producer(value)).second) continue;
        if (ops.size() > kMostOps) return {};
        open.insert(open.end(), node.operands.begin(), node.operands.end());
      } else if (leaves.insert(value.index).second) {
        const std::optional<int64_t> bytes = BytesToRead(value);
        if (!bytes.has_value()) return {};
        read += *bytes;
      }
    }
    const int64_t own = SizeOf(graph_.type(root).dtype);
    const int64_t saved = (is_stored_[ValueIndex(root)] ? 0 : kReadsOfAWrite * own) + kernels * own;
    const int64_t taken = kernels * (kOpsOfAByte * read + static_cast<int64_t>(ops.size()));
    const bool is_cheaper = taken < kOpsOfAByte * saved;
    return is_cheaper ? std::vector<int32_t>(ops.begin(), ops.end()) : std::vector<int32_t>();
  }

  // Returns how many bytes an element of a value takes to read once more; nothing for what nobody can read before the
  // kernel that computes the cluster is done.
  std::optional<int64_t> BytesToRead(ValueId value) const {
    const int64_t bytes = SizeOf(graph_.type(value).dtype);
    if (graph_.is_input(value)) return bytes;
    const Node& node = Producer(value);
    if (IsFusedLeaf(node)) return 0;
    if (Is(*node.op, CoreOp::kBroadcastInDim)) {
      if (IsSmallBeside(graph_.type(node.operands[0]), graph_.type(value))) return 0;
      return origins_[ValueIndex(value)] < 0 ? std::make_optional(bytes) : std::nullopt;
    }
    const bool is_joined = IsElementwise(node) || Is(*node.op, CoreOp::kDotGeneral) || IsAffineDot(*node.op);
    return is_joined ? kBytesOfAStoredByte * bytes : bytes;
  }

  const Graph& graph_;
  std::vector<int32_t> parents_;                     // by value, of clusters
  std::vector<bool> is_stored_;                      // by value: an output, or read by what reads memory
  std::vector<int32_t> origins_;                     // by value: the reduction that it is made of, or -1
  std::map<int32_t, std::set<Axes>> axes_by_value_;  // of the reductions that read it
  std::map<int32_t, Cluster> clusters_;              // by their first value
};

// Writes the graph with the repetitions.
class Repetition {
 public:
  explicit Repetition(Graph* graph) : graph_(*graph), search_(*graph) {
    repeats_.reserve(graph->nodes().size());
    for (const Node& node : graph->nodes()) {
      if (!CheckStopped().ok()) return;  // the pipeline asks again
      repeats_.push_back(search_.OpsToRepeat(node));
    }
  }

  bool Run() {
    const auto is_empty = [](const std::vector<int32_t>& ops) { return ops.empty(); };
    if (repeats_.size() < graph_.nodes().size() || std::all_of(repeats_.begin(), repeats_.end(), is_empty))
      return false;
    for (const GraphInput& input : graph_.inputs()) map_.push_back(written_.AddInput(input.name, input.type));
    for (size_t i = 0; i < repeats_.size(); ++i) {
      const Node& node = graph_.nodes()[i];
      std::map<int32_t, ValueId>* const own =
          repeats_[i].empty() ? nullptr : &copies_[{AxesOf(node), node.operands[0].index}];
      for (const int32_t op : repeats_[i]) {
        if (own->contains(op)) continue;
        const ValueId copy = Write(graph_.nodes()[static_cast<size_t>(op)], own);
        own->emplace(op, copy);
      }
      const ValueId first = Write(node, own);
      for (int32_t r = 0; r < node.num_results; ++r) map_.push_back({first.index + r});
    }
    for (const GraphOutput& output : graph_.outputs()) written_.AddOutput(output.name, map_[ValueIndex(output.value)]);
    graph_ = std::move(written_);
    return true;
  }

 private:
  // Appends a node; it reads the copies, where there are some.
  ValueId Write(const Node& node, const std::map<int32_t, ValueId>* copies) {
    Node made = node;
    for (ValueId& operand : made.operands) {
      const auto copy = copies == nullptr || graph_.is_input(operand) ? std::map<int32_t, ValueId>::const_iterator()
                                                                      : copies->find(graph_.producer(operand));
      const bool is_copied = copies != nullptr && !graph_.is_input(operand) && copy != copies->end();
      operand = is_copied ? copy->second : map_[ValueIndex(operand)];
    }
    const ValueId first = written_.AddNode(std::move(made));
    for (int32_t r = 0; r < node.num_results; ++r) {
      written_.set_type({first.index + r}, graph_.type({node.first_result.index + r}));
    }
    return first;
  }

  Graph& graph_;
  Search search_;
  std::vector<std::vector<int32_t>> repeats_;  // by node, the ops that it gets for itself
  Graph written_ = Graph::EmptyLike(graph_);
  std::vector<ValueId> map_;  // new value by old one
  // By the axes and the operand of reductions, by node: a kernel shares none with another one.
  std::map<std::pair<Axes, int32_t>, std::map<int32_t, ValueId>> copies_;
};

}  // namespace

absl::StatusOr<bool> RepeatForReductions(Graph* graph, const PassOptions& options) {
  if (!options.fuses) return false;
  return Repetition(graph).Run();
}

}  // namespace tensord
