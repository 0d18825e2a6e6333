#include "engine/passes/layout/hoist_slices.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/ops/core_ops.h"
#include "engine/passes/layout/slice_ranges.h"
#include "engine/passes/rewriting/elementwise.h"

namespace tensord {
namespace {

constexpr size_t kMaxSlices = 8;  // of one value
// The most ops that are computed again for further slices of a value. Each costs about a tenth of a nanosecond an
// element, the cost of a byte or two of memory traffic.
constexpr int64_t kMaxRepeatedOps = 48;

bool IsSlice(const Node& node) { return Is(*node.op, CoreOp::kSlice); }

bool IsStatic(const TensorType& type) {
  return std::all_of(type.shape.begin(), type.shape.end(), [](const Dim& dim) { return dim.is_static(); });
}

int64_t LengthOf(const SliceRange& range) {
  return range.limit <= range.start ? 0 : (range.limit - range.start - 1) / range.stride + 1;
}

// Returns the elements `outer` of the elements `inner`. For an existing tensor no sum overflows.
SliceRanges JoinedRanges(const SliceRanges& inner, const SliceRanges& outer) {
  SliceRanges joined(inner.size());
  for (size_t axis = 0; axis < inner.size(); ++axis) {
    const int64_t length = LengthOf(outer[axis]);
    const SliceRange nothing = {inner[axis].start, inner[axis].start, 1};
    joined[axis] = length == 0 ? nothing : Joined(inner[axis], outer[axis], length).value_or(nothing);
  }
  return joined;
}

class Hoisting {
 public:
  explicit Hoisting(Graph& graph) : graph_(graph) {}

  bool Run() {
    if (std::none_of(graph_.nodes().begin(), graph_.nodes().end(), IsSlice)) return false;
    MeasureCones();
    FindWants();
    if (!hoists_any_) return false;
    Rebuild();
    return true;
  }

 private:
  // The parts of a value that are read.
  struct Want {
    bool all = false;
    std::vector<SliceRanges> parts;  // else these, distinct
  };

  Want& WantOf(ValueId value) { return wants_[static_cast<size_t>(value.index)]; }

  static void AddPart(SliceRanges part, Want& want) {
    if (want.all || std::find(want.parts.begin(), want.parts.end(), part) != want.parts.end()) return;
    if (want.parts.size() == kMaxSlices) {
      want.all = true;
    } else {
      want.parts.push_back(std::move(part));
    }
  }

  // Counts, by value, the cheap ops that compute it from stored values, once a path.
  void MeasureCones() {
    cones_.assign(static_cast<size_t>(graph_.num_values()), 0);
    for (const Node& node : graph_.nodes()) {
      const bool counts = IsElementwise(node) && IsCheap(*node.op);
      if (!counts && !IsSlice(node)) continue;
      int64_t cone = counts ? 1 : 0;
      for (const ValueId operand : node.operands) cone += cones_[static_cast<size_t>(operand.index)];
      cones_[static_cast<size_t>(node.first_result.index)] = std::min(cone, kMaxRepeatedOps + 1);
    }
  }

  bool MayHoist(const Node& node) {
    const Want& want = WantOf(node.first_result);
    if (want.all || want.parts.empty() || !IsElementwise(node)) return false;
    if (!IsStatic(graph_.type(node.first_result))) return false;
    if (want.parts.size() == 1) return true;
    const int64_t again = static_cast<int64_t>(want.parts.size()) - 1;
    return IsCheap(*node.op) && again * cones_[static_cast<size_t>(node.first_result.index)] <= kMaxRepeatedOps;
  }

  // Finds values of which every reader joins a kernel with the value's producer.
  void FindReaders() {
    joins_.assign(static_cast<size_t>(graph_.num_values()), true);
    for (const Node& node : graph_.nodes()) {
      if (IsElementwise(node) || IsSlice(node) || Is(*node.op, CoreOp::kReduce)) continue;
      for (const ValueId operand : node.operands) joins_[static_cast<size_t>(operand.index)] = false;
    }
    for (const GraphOutput& output : graph_.outputs()) joins_[static_cast<size_t>(output.value.index)] = false;
  }

  void FindWants() {
    FindReaders();
    wants_.resize(static_cast<size_t>(graph_.num_values()));
    hoisted_.assign(graph_.nodes().size(), false);
    for (const GraphOutput& output : graph_.outputs()) WantOf(output.value).all = true;
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      const Want& want = WantOf(node.first_result);
      if (IsSlice(node) && IsStatic(graph_.type(node.operands[0]))) {
        WantOfSlice(node, want);
        continue;
      }
      hoisted_[i] = MayHoist(node);
      hoists_any_ = hoists_any_ || hoisted_[i];
      for (const ValueId operand : node.operands) {
        Want& of_operand = WantOf(operand);
        if (!hoisted_[i] || graph_.type(operand).rank() == 0) {
          of_operand.all = true;
        } else {
          for (const SliceRanges& part : want.parts) AddPart(part, of_operand);
        }
      }
    }
  }

  void WantOfSlice(const Node& node, const Want& want) {
    Want& of_operand = WantOf(node.operands[0]);
    if (!joins(node.first_result)) {
      of_operand.all = true;
      return;
    }
    const SliceRanges ranges = RangesOf(node);
    if (want.all) return AddPart(ranges, of_operand);
    for (const SliceRanges& part : want.parts) AddPart(JoinedRanges(ranges, part), of_operand);
  }

  void Rebuild() {
    result_ = Graph::EmptyLike(graph_);
    types_ = graph_.TakeTypes();
    nodes_ = graph_.TakeNodes();
    map_.resize(types_.size());
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      map_[i] = result_.AddInput(graph_.inputs()[i].name, graph_.inputs()[i].type);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      const Want& want = WantOf(node.first_result);
      const bool reads_parts = !want.all && (hoisted_[i] || (IsSlice(node) && joins(node.first_result)));
      if (!reads_parts) {
        AddWhole(i);
        continue;
      }
      for (const SliceRanges& part : want.parts) {
        parts_[{node.first_result.index, part}] =
            IsSlice(node) ? PartOf(node.operands[0], JoinedRanges(RangesOf(node), part), node.name)
                          : AddCopy(node, part);
      }
    }
    for (const GraphOutput& output : graph_.outputs()) result_.AddOutput(output.name, Mapped(output.value));
    graph_ = std::move(result_);
  }

  bool joins(ValueId value) const { return joins_[static_cast<size_t>(value.index)]; }
  ValueId& Mapped(ValueId old) { return map_[static_cast<size_t>(old.index)]; }
  const TensorType& TypeOf(ValueId old) const { return types_[static_cast<size_t>(old.index)]; }

  void AddWhole(size_t i) {
    Node node = nodes_[i];
    const ValueId old = node.first_result;
    if (IsSlice(node) && IsStatic(TypeOf(node.operands[0]))) {
      Mapped(old) = PartOf(node.operands[0], RangesOf(node), node.name);
      return;
    }
    for (ValueId& operand : node.operands) operand = Mapped(operand);
    const int32_t num_results = node.num_results;
    const ValueId added = result_.AddNode(std::move(node));
    for (int32_t r = 0; r < num_results; ++r) {
      Mapped({old.index + r}) = {added.index + r};
      result_.set_type({added.index + r}, TypeOf({old.index + r}));
    }
  }

  ValueId AddTyped(Node node, const SliceRanges& part, DType dtype) {
    std::vector<int64_t> lengths;
    for (const SliceRange& range : part) lengths.push_back(LengthOf(range));
    const ValueId added = result_.AddNode(std::move(node));
    result_.set_type(added, {.dtype = dtype, .shape = SymbolicShape(lengths.begin(), lengths.end())});
    return added;
  }

  ValueId AddCopy(const Node& node, const SliceRanges& part) {
    Node copy = {.name = node.name, .op = node.op, .attrs = node.attrs};
    for (const ValueId operand : node.operands) {
      copy.operands.push_back(TypeOf(operand).rank() == 0 ? Mapped(operand) : PartOf(operand, part, node.name));
    }
    return AddTyped(std::move(copy), part, TypeOf(node.first_result).dtype);
  }

  ValueId PartOf(ValueId old, const SliceRanges& part, const std::string& name) {
    const auto [it, is_new] = parts_.try_emplace({old.index, part});
    if (!is_new) return it->second;
    Node slice = {.name = name, .op = &Def(CoreOp::kSlice), .attrs = SliceAttributes(part)};
    slice.operands.push_back(Mapped(old));
    it->second = AddTyped(std::move(slice), part, TypeOf(old).dtype);
    return it->second;
  }

  Graph& graph_;
  std::vector<int64_t> cones_;  // by value
  std::vector<bool> joins_;
  std::vector<Want> wants_;
  std::vector<bool> hoisted_;  // by node
  bool hoists_any_ = false;

  // While the new graph is made.
  Graph result_;
  std::vector<Node> nodes_;
  std::vector<TensorType> types_;
  std::vector<ValueId> map_;                                  // new value by old one, where it is there whole
  std::map<std::pair<int32_t, SliceRanges>, ValueId> parts_;  // by old value
};

}  // namespace

absl::StatusOr<bool> HoistSlices(Graph* graph, const PassOptions& options) {
  return options.fuses && Hoisting(*graph).Run();
}

}  // namespace tensord
