#include "engine/passes/fusion/fusion_views.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/ops/core_ops.h"
#include "engine/passes/fusion/fusion_groups.h"

namespace tensord {
namespace {

constexpr int64_t kSmallBytes = int64_t{64} << 10;  // stays in the caches, in whatever order it is read

bool IsSmall(const TensorType& type) {
  const std::optional<int64_t> bytes = StaticBytes(type);
  return bytes.has_value() && *bytes <= kSmallBytes;
}

bool IsUnit(const Dim& dim) { return dim.size.is(1); }

// Returns by axis the number of axes before it that are not of size 1.
absl::InlinedVector<int32_t, 6> Ordinals(const SymbolicShape& shape) {
  absl::InlinedVector<int32_t, 6> ordinals;
  int32_t next = 0;
  for (const Dim& dim : shape) {
    ordinals.push_back(next);
    next += IsUnit(dim) ? 0 : 1;
  }
  return ordinals;
}

bool DiffersInUnitsOnly(const SymbolicShape& a, const SymbolicShape& b) {
  size_t i = 0, j = 0;
  while (true) {
    while (i < a.size() && IsUnit(a[i])) ++i;
    while (j < b.size() && IsUnit(b[j])) ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (!(a[i++] == b[j++])) return false;
  }
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), views_(static_cast<size_t>(graph.num_values())) {}

  std::vector<FusionView> Find() {
    for (int32_t v = 0; v < graph_.num_values(); ++v) {
      const ValueId value{v};
      if (graph_.is_input(value) || !Extend(graph_.nodes()[static_cast<size_t>(graph_.producer(value))], value)) {
        views_[static_cast<size_t>(v)] = Itself(value);
        views_[static_cast<size_t>(v)].origin = value;
      }
    }
    return std::move(views_);
  }

 private:
  FusionView Itself(ValueId value) const {
    FusionView view{.base = value, .origin = value};
    int32_t axes = 0;
    for (const Dim& dim : graph_.type(value).shape) axes += IsUnit(dim) ? 0 : 1;
    view.axes.resize(static_cast<size_t>(axes));
    std::iota(view.axes.begin(), view.axes.end(), 0);
    return view;
  }

  // Returns false if the node is no layout op.
  bool Extend(const Node& node, ValueId value) {
    const bool is_layout = Is(*node.op, CoreOp::kBroadcastInDim) || Is(*node.op, CoreOp::kReshape) ||
                           Is(*node.op, CoreOp::kTranspose) || Is(*node.op, CoreOp::kSlice) ||
                           Is(*node.op, CoreOp::kReverse);
    if (!is_layout) return false;
    const ValueId operand = node.operands[0];
    const ValueId origin = views_[static_cast<size_t>(operand.index)].origin;
    FusionView view = views_[static_cast<size_t>(operand.index)];
    if (!Apply(node, operand, value, &view)) {
      view = Itself(value);
      view.origin = origin;
    }
    views_[static_cast<size_t>(value.index)] = std::move(view);
    return true;
  }

  // Tells whether a small or leading-contiguous tensor is read; leaves are computed, in any order.
  bool ReadsWell(const Node& node, ValueId operand, bool keeps_runs) const {
    if (keeps_runs || IsSmall(graph_.type(operand))) return true;
    const ValueId base = views_[static_cast<size_t>(operand.index)].base;
    return !graph_.is_input(base) && IsFusedLeaf(graph_.nodes()[static_cast<size_t>(graph_.producer(base))]) &&
           !Is(*node.op, CoreOp::kReshape);
  }

  bool Apply(const Node& node, ValueId operand, ValueId result, FusionView* view) const {
    const SymbolicShape& from = graph_.type(operand).shape;
    const SymbolicShape& to = graph_.type(result).shape;
    if (Is(*node.op, CoreOp::kReshape)) return DiffersInUnitsOnly(from, to);
    if (Is(*node.op, CoreOp::kBroadcastInDim)) {
      const std::vector<int64_t>& axes = node.attrs.Ints("broadcast_dimensions");
      const auto to_ordinals = Ordinals(to);
      absl::InlinedVector<int32_t, 4> moved;
      for (size_t i = 0; i < from.size(); ++i) {
        if (IsUnit(from[i])) continue;
        const size_t axis = static_cast<size_t>(axes[i]);
        // A size that may turn out to be 1 is read well, but is no axis of a computed value.
        view->is_repeat = view->is_repeat && from[i] == to[axis] && (moved.empty() || moved.back() < to_ordinals[axis]);
        moved.push_back(to_ordinals[axis]);
      }
      for (int32_t& axis : view->axes) axis = moved[static_cast<size_t>(axis)];
      return true;
    }
    view->is_repeat = false;
    view->axes.clear();
    if (Is(*node.op, CoreOp::kTranspose)) {
      const std::vector<int64_t>& permutation = node.attrs.Ints("permutation");
      return ReadsWell(node, operand, !permutation.empty() && permutation[0] == 0);
    }
    if (Is(*node.op, CoreOp::kSlice)) {
      const std::vector<int64_t>& strides = node.attrs.Ints("strides");
      return ReadsWell(node, operand, strides.empty() || strides[0] == 1);
    }
    const std::vector<int64_t>& reversed = node.attrs.Ints("dimensions");
    return ReadsWell(node, operand, std::find(reversed.begin(), reversed.end(), 0) == reversed.end());
  }

  const Graph& graph_;
  std::vector<FusionView> views_;
};

}  // namespace

FusionShapes::FusionShapes() { NumberOf(Sizes()); }

std::optional<int64_t> StaticBytes(const TensorType& type) {
  if (!type.is_static()) return std::nullopt;
  Shape shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.size.constant());
  return NumBytes(type.dtype, shape);
}

bool IsSmallBeside(const TensorType& type, const TensorType& result) {
  constexpr int64_t kSmallPart = 8;
  const std::optional<int64_t> bytes = StaticBytes(type), most = StaticBytes(result);
  return bytes.has_value() && most.has_value() && *bytes <= *most / kSmallPart;
}

int32_t FusionShapes::NumberOf(Sizes sizes) {
  const auto [it, is_new] = numbers_.try_emplace(std::move(sizes), static_cast<int32_t>(sizes_.size()));
  if (is_new) sizes_.push_back(it->first);
  return it->second;
}

FusionShapes::Sizes FusionShapes::SizesOf(const SymbolicShape& shape) {
  Sizes sizes;
  for (const Dim& dim : shape) {
    if (IsUnit(dim)) continue;
    if (dim.size.is_constant()) {
      sizes.push_back(dim.size.constant());
    } else {
      const int64_t next = -1 - static_cast<int64_t>(expressions_.size());
      sizes.push_back(expressions_.try_emplace(dim.size.ToString(), next).first->second);
    }
  }
  return sizes;
}

std::vector<FusionView> FindFusionViews(const Graph& graph) { return Finder(graph).Find(); }

}  // namespace tensord
