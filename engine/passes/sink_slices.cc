#include "engine/passes/sink_slices.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// Windows of a value that are computed one by one.
constexpr size_t kMaxWindows = 8;
// Elementwise ops an element, beyond the first window's, that are cheaper than writing and reading it.
constexpr int64_t kMaxRepeatedOps = 32;
constexpr int64_t kCostlyOps = 64;  // what an op counts that is no plain arithmetic
constexpr int64_t kManyOps = 1 << 20;
// Sweeps until it is settled what is computed in windows; graphs that take longer stay as they are.
constexpr int kMaxSweeps = 8;

struct Span {
  int64_t start, size;
  friend bool operator==(const Span&, const Span&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Span& span) {
    return H::combine(std::move(h), span.start, span.size);
  }
};
using Window = absl::InlinedVector<Span, 4>;

// A window of a value that somebody reads, the node that a slice of it is named after, and the value that it becomes.
struct Demand {
  Window window;
  size_t reader = 0;
  ValueId value{};
};

int64_t Volume(const Window& window) {
  int64_t volume = 1;
  for (const Span& span : window) volume *= span.size;
  return volume;
}

bool IsPlainArithmetic(CoreOp op) {
  switch (op) {
    case CoreOp::kAdd:
    case CoreOp::kSubtract:
    case CoreOp::kMultiply:
    case CoreOp::kNegate:
    case CoreOp::kAbs:
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
    case CoreOp::kCompare:
    case CoreOp::kSelect:
    case CoreOp::kClamp:
    case CoreOp::kAnd:
    case CoreOp::kOr:
    case CoreOp::kXor:
    case CoreOp::kNot:
    case CoreOp::kConvert:
      return true;
    default:
      return false;
  }
}

class SliceSinker {
 public:
  explicit SliceSinker(const Graph& graph) : graph_(graph), nodes_(graph.nodes().size()), values_(Count()) {}

  // The new graph, or nothing where there is nothing to do.
  std::optional<Graph> Run() {
    bool any = false;
    for (size_t i = 0; i < nodes_.size(); ++i) any = Classify(i) || any;
    if (!any) return std::nullopt;
    for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
      CollectDemands();
      bool settled = true, sinks = false;
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i].sinks || nodes_[i].form != Form::kElementwise) continue;
        if (ReadsWholeResults(i)) {
          nodes_[i].stays = true;
          settled = false;
        }
        sinks = true;
      }
      if (!sinks) return std::nullopt;
      if (settled) return Rebuild();
    }
    return std::nullopt;
  }

 private:
  enum class Form : uint8_t { kOther, kElementwise, kBroadcast, kSlice };
  struct NodeState {
    Form form = Form::kOther;
    bool stays = false;  // computed as a whole, whoever reads it
    bool sinks = false;  // computed in the windows that are demanded
    int64_t ops = 0;     // elementwise ops that an element takes, those of its operands included
  };
  struct ValueState {
    bool whole = false;  // somebody reads all of it
    std::vector<Demand> demands;
    absl::flat_hash_map<Window, size_t> places;  // in demands
    ValueId value{};                             // in the new graph
  };

  size_t Count() const { return static_cast<size_t>(graph_.num_values()); }
  const Node& node(size_t i) const { return graph_.nodes()[i]; }
  ValueState& state(ValueId v) { return values_[static_cast<size_t>(v.index)]; }
  bool IsResult(ValueId v) const { return !graph_.is_input(v); }
  size_t ProducerOf(ValueId v) const { return static_cast<size_t>(graph_.producer(v)); }
  bool HasShapeOf(ValueId operand, ValueId result) const {
    return graph_.type(operand).shape == graph_.type(result).shape;
  }

  Window WholeOf(ValueId v) const {
    Window window;
    for (const Dim& dim : graph_.type(v).shape) window.push_back({0, dim.size.constant()});
    return window;
  }

  // Whether it is a slice that may sink.
  bool Classify(size_t i) {
    const Node& n = node(i);
    NodeState& s = nodes_[i];
    if (n.body != nullptr || n.num_results != 1 || n.op->family != absl::string_view("core")) return false;
    if (!graph_.type(n.first_result).is_static()) return false;
    const bool reads_static =
        std::all_of(n.operands.begin(), n.operands.end(), [&](ValueId v) { return graph_.type(v).is_static(); });
    if (!reads_static || n.operands.empty()) return false;
    if (Is(*n.op, CoreOp::kSlice)) {
      const std::vector<int64_t>& strides = n.attrs.Ints("strides");
      if (std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride != 1; })) return false;
      s.form = Form::kSlice;
      s.ops = OpsOf(n.operands[0]);
      return true;
    }
    if (Is(*n.op, CoreOp::kBroadcastInDim)) {
      s.form = Form::kBroadcast;
    } else if (n.op->has(kElementwise)) {
      s.form = Form::kElementwise;
      s.ops = IsPlainArithmetic(static_cast<CoreOp>(n.op->index)) ? 1 : kCostlyOps;
      for (ValueId operand : n.operands) s.ops = std::min(kManyOps, s.ops + OpsOf(operand));
    }
    return false;
  }

  int64_t OpsOf(ValueId v) const { return IsResult(v) ? nodes_[ProducerOf(v)].ops : 0; }

  void DemandWhole(ValueId v) { state(v).whole = true; }

  void DemandWindow(ValueId v, const Window& window, size_t reader) {
    if (window == WholeOf(v)) return DemandWhole(v);
    ValueState& s = state(v);
    if (s.places.emplace(window, s.demands.size()).second) s.demands.push_back({window, reader, {}});
  }

  static Window SliceWindow(const Node& slice, const Window& of_result) {
    const std::vector<int64_t>& starts = slice.attrs.Ints("start_indices");
    Window window = of_result;
    for (size_t axis = 0; axis < window.size(); ++axis) window[axis].start += starts[axis];
    return window;
  }

  // What a window of a broadcast repeats.
  Window RepeatedWindow(const Node& broadcast, const Window& window) const {
    const std::vector<int64_t>& dimensions = broadcast.attrs.Ints("broadcast_dimensions");
    const ValueId operand = broadcast.operands[0];
    Window repeated = WholeOf(operand);
    for (size_t i = 0; i < repeated.size(); ++i) {
      const size_t axis = static_cast<size_t>(dimensions[i]);
      if (graph_.type(operand).shape[i] == graph_.type(broadcast.first_result).shape[axis]) repeated[i] = window[axis];
    }
    return repeated;
  }

  bool IsWorthIt(const NodeState& s, ValueId v, const std::vector<Demand>& demands) const {
    if (demands.empty() || demands.size() > kMaxWindows) return false;
    const int64_t whole = Volume(WholeOf(v));
    int64_t read = 0;
    for (const Demand& demand : demands) read += Volume(demand.window);
    if (demands.size() == 1) return read <= whole / 2;
    return read >= whole + whole / 2 && static_cast<int64_t>(demands.size() - 1) * s.ops <= kMaxRepeatedOps;
  }

  // From the last node to the first, so that a node's readers come before it.
  void CollectDemands() {
    for (ValueState& s : values_) s = {};
    for (const GraphOutput& output : graph_.outputs()) DemandWhole(output.value);
    for (size_t i = nodes_.size(); i-- > 0;) {
      const Node& n = node(i);
      NodeState& s = nodes_[i];
      ValueState& result = state(n.first_result);
      s.sinks =
          s.form == Form::kElementwise && !result.whole && !s.stays && IsWorthIt(s, n.first_result, result.demands);
      // Slices and broadcasts are written anew wherever they are read.
      if (s.sinks || s.form == Form::kSlice || s.form == Form::kBroadcast) {
        for (const Demand& demand : result.demands) DemandOfOperands(n, s.form, demand.window, demand.reader);
      }
      if (s.sinks) continue;
      if (s.form == Form::kSlice) {
        if (result.whole) DemandOfOperands(n, s.form, WholeOf(n.first_result), i);
      } else if (s.form != Form::kBroadcast || result.whole) {
        for (ValueId operand : n.operands) DemandWhole(operand);
      }
    }
  }

  void DemandOfOperands(const Node& n, Form form, const Window& window, size_t reader) {
    for (ValueId operand : n.operands) {
      if (form == Form::kSlice) {
        DemandWindow(operand, SliceWindow(n, window), reader);
      } else if (form == Form::kBroadcast) {
        DemandWindow(operand, RepeatedWindow(n, window), reader);
      } else if (HasShapeOf(operand, n.first_result)) {
        DemandWindow(operand, window, reader);
      } else {
        DemandWhole(operand);  // of rank 0
      }
    }
  }

  // Whether windows are read of what is computed as a whole only for that: it would lie in memory in place of this.
  bool ReadsWholeResults(size_t i) const {
    const Node& n = node(i);
    return std::any_of(n.operands.begin(), n.operands.end(), [&](ValueId operand) {
      if (!IsResult(operand) || !HasShapeOf(operand, n.first_result)) return false;
      const size_t producer = ProducerOf(operand);
      const Form form = nodes_[producer].form;
      if (form == Form::kElementwise) return !nodes_[producer].sinks;
      return form == Form::kOther && node(producer).operands.empty();  // an iota, which is computed where it is read
    });
  }

  // A slice is made right before the first that reads it.
  ValueId Lookup(ValueId v, const Window& window) {
    ValueState& s = state(v);
    const auto place = s.places.find(window);
    if (place == s.places.end()) return s.value;  // all of it
    Demand& demand = s.demands[place->second];
    if (demand.value.index < 0) demand.value = AddSlice(v, demand);
    return demand.value;
  }

  ValueId Add(Node n, DType dtype, const Window& window) {
    TensorType type{.dtype = dtype, .shape = {}};
    for (const Span& span : window) type.shape.push_back(Dim(span.size));
    const ValueId value = new_.AddNode(std::move(n));
    new_.set_type(value, std::move(type));
    return value;
  }

  // A window of what lies in memory.
  ValueId AddSlice(ValueId v, const Demand& demand) {
    std::vector<int64_t> starts, limits;
    for (const Span& span : demand.window) {
      starts.push_back(span.start);
      limits.push_back(span.start + span.size);
    }
    Attributes attrs(Def(CoreOp::kSlice).attrs);
    attrs.Set("start_indices", std::move(starts)).Set("limit_indices", std::move(limits));
    attrs.Set("strides", std::vector<int64_t>());
    Node slice{.name = node(demand.reader).name, .op = &Def(CoreOp::kSlice), .attrs = std::move(attrs)};
    slice.operands.push_back(state(v).value);
    return Add(std::move(slice), graph_.type(v).dtype, demand.window);
  }

  void AddWindow(const Node& n, Form form, Demand* demand) {
    if (form == Form::kSlice) {
      demand->value = Lookup(n.operands[0], SliceWindow(n, demand->window));
      return;
    }
    Node part = n;
    for (ValueId& operand : part.operands) {
      if (form == Form::kBroadcast) {
        operand = Lookup(operand, RepeatedWindow(n, demand->window));
      } else {
        operand = HasShapeOf(operand, n.first_result) ? Lookup(operand, demand->window) : state(operand).value;
      }
    }
    if (form == Form::kBroadcast) {
      std::vector<DimExpr> shape;
      for (const Span& span : demand->window) shape.push_back(DimExpr(span.size));
      part.attrs.Set("shape", std::move(shape));
    }
    demand->value = Add(std::move(part), graph_.type(n.first_result).dtype, demand->window);
  }

  Graph Rebuild() {
    new_.set_name(graph_.name());
    new_.set_algebra(graph_.algebra());
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId v{static_cast<int32_t>(i)};
      state(v).value = new_.AddInput(graph_.inputs()[i].name, graph_.inputs()[i].type);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& n = node(i);
      const NodeState& s = nodes_[i];
      ValueState& result = state(n.first_result);
      const bool has_whole = s.form == Form::kOther || result.whole || (s.form == Form::kElementwise && !s.sinks);
      if (has_whole && s.form == Form::kSlice) {
        result.value = Lookup(n.operands[0], SliceWindow(n, WholeOf(n.first_result)));
      } else if (has_whole) {
        AddWhole(n);
      }
      if (s.sinks || s.form == Form::kSlice || s.form == Form::kBroadcast) {
        // In the order of their readers, which were gone through backwards.
        for (size_t k = result.demands.size(); k-- > 0;) AddWindow(n, s.form, &result.demands[k]);
      }
    }
    for (const GraphOutput& output : graph_.outputs()) new_.AddOutput(output.name, state(output.value).value);
    return std::move(new_);
  }

  void AddWhole(const Node& n) {
    Node whole = n;
    for (ValueId& operand : whole.operands) operand = state(operand).value;
    const ValueId first = new_.AddNode(std::move(whole));
    for (int32_t r = 0; r < n.num_results; ++r) {
      const ValueId old{n.first_result.index + r};
      state(old).value = {first.index + r};
      new_.set_type(state(old).value, graph_.type(old));
    }
  }

  const Graph& graph_;
  std::vector<NodeState> nodes_;
  std::vector<ValueState> values_;
  Graph new_;
};

}  // namespace

absl::StatusOr<bool> SinkSlices(Graph* graph, const PassOptions& options) {
  if (!options.fuses) return false;
  std::optional<Graph> sunk = SliceSinker(*graph).Run();
  if (!sunk.has_value()) return false;
  *graph = *std::move(sunk);
  return true;
}

}  // namespace tensord
