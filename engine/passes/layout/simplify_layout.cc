#include "engine/passes/layout/simplify_layout.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/dynamic_slicing.h"
#include "engine/passes/layout/slice_ranges.h"
#include "engine/passes/rewriting/graph_rewriter.h"
#include "engine/passes/rewriting/splat.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;
using Result = std::optional<ValueId>;

bool IsZeros(const Ints& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 0; });
}

std::vector<DimExpr> SizesOf(const TensorType& type) {
  std::vector<DimExpr> sizes;
  for (const Dim& dim : type.shape) sizes.push_back(dim.size);
  return sizes;
}

ValueId AddBroadcast(absl::string_view name, ValueId operand, Ints dimensions, const TensorType& type,
                     GraphRewriter& graph) {
  Attributes attrs(Def(CoreOp::kBroadcastInDim).attrs);
  attrs.Set("shape", SizesOf(type)).Set("broadcast_dimensions", std::move(dimensions));
  return graph.Add(CoreOp::kBroadcastInDim, name, std::move(attrs), {operand}, type);
}

ValueId AddReshape(absl::string_view name, ValueId operand, const TensorType& type, int64_t order,
                   GraphRewriter& graph) {
  Attributes attrs(Def(CoreOp::kReshape).attrs);
  attrs.Set("shape", SizesOf(type)).Set("order", order);
  return graph.Add(CoreOp::kReshape, name, std::move(attrs), {operand}, type);
}

Result RewriteTranspose(const Node& node, GraphRewriter& graph) {
  const TensorType& type = graph.result_type();
  const Ints& permutation = node.attrs.Ints("permutation");
  if (IsIdentity(permutation)) return node.operands[0];
  if (const Node* inner = graph.producer_if(node.operands[0], CoreOp::kTranspose); inner != nullptr) {
    const AxisOrder joined = Compose(inner->attrs.Ints("permutation"), permutation);
    const ValueId operand = inner->operands[0];
    if (IsIdentity(joined)) return operand;
    Attributes attrs = node.attrs;
    attrs.Set("permutation", Ints(joined.begin(), joined.end()));
    return graph.Add(CoreOp::kTranspose, node.name, std::move(attrs), {operand}, type);
  }
  if (const Node* inner = graph.producer_if(node.operands[0], CoreOp::kBroadcastInDim);
      inner != nullptr && IsExact(type)) {
    const Ints dimensions = MapAxes(inner->attrs.Ints("broadcast_dimensions"), Inverse(permutation));
    return AddBroadcast(node.name, inner->operands[0], dimensions, type, graph);
  }
  return std::nullopt;
}

bool IsRowMajor(const Node& reshape) { return static_cast<Order>(reshape.attrs.Int("order")) == Order::kRowMajor; }

// Returns by axis of `from` the same axis of `to`, if `to` has the same axes and additional ones of size 1.
std::optional<Ints> WithUnitAxes(const TensorType& from, const TensorType& to) {
  Ints axes;
  size_t k = 0;
  for (const Dim& dim : from.shape) {
    while (k < to.shape.size() && !(to.shape[k] == dim) && to.shape[k].size.is(1)) ++k;
    if (k == to.shape.size() || !(to.shape[k] == dim)) return std::nullopt;
    axes.push_back(static_cast<int64_t>(k++));
  }
  for (; k < to.shape.size(); ++k) {
    if (!to.shape[k].size.is(1)) return std::nullopt;
  }
  return axes;
}

// A reshape that changes nothing but axes of size 1 keeps the sequence of the elements in either order.
bool ChangesUnitAxesOnly(const TensorType& a, const TensorType& b) {
  const auto next = [](const TensorType& type, size_t k) {
    while (k < type.shape.size() && type.shape[k].size.is(1)) ++k;
    return k;
  };
  size_t i = next(a, 0), k = next(b, 0);
  for (; i < a.shape.size() && k < b.shape.size(); i = next(a, i + 1), k = next(b, k + 1)) {
    if (!(a.shape[i] == b.shape[k])) return false;
  }
  return i == a.shape.size() && k == b.shape.size();
}

Result RewriteReshape(const Node& node, GraphRewriter& graph) {
  const TensorType& type = graph.result_type();
  if (const Result same = graph.Same(node.operands[0]); same.has_value()) return same;
  if (!IsExact(type)) return std::nullopt;
  if (const Node* inner = graph.producer_if(node.operands[0], CoreOp::kReshape); inner != nullptr) {
    const ValueId operand = inner->operands[0];
    const bool inner_free = ChangesUnitAxesOnly(graph.type(operand), graph.type(node.operands[0]));
    const bool outer_free = ChangesUnitAxesOnly(graph.type(node.operands[0]), type);
    if (IsRowMajor(*inner) != IsRowMajor(node) && !inner_free && !outer_free) return std::nullopt;
    const Node& decides = inner_free ? node : *inner;
    return AddReshape(node.name, operand, type, decides.attrs.Int("order"), graph);
  }
  if (const Node* inner = graph.producer_if(node.operands[0], CoreOp::kBroadcastInDim); inner != nullptr) {
    const ValueId operand = inner->operands[0];
    if (graph.type(operand).rank() == 0) return AddBroadcast(node.name, operand, {}, type, graph);
    if (const auto axes = WithUnitAxes(graph.type(node.operands[0]), type); axes.has_value()) {
      return AddBroadcast(node.name, operand, MapAxes(inner->attrs.Ints("broadcast_dimensions"), *axes), type, graph);
    }
  }
  return std::nullopt;
}

Result RewriteBroadcast(const Node& node, GraphRewriter& graph) {
  const TensorType& type = graph.result_type();
  const Ints& dimensions = node.attrs.Ints("broadcast_dimensions");
  if (IsIdentity(dimensions)) {
    if (const Result same = graph.Same(node.operands[0]); same.has_value()) return same;
  }
  if (!IsExact(type)) return std::nullopt;
  if (const Node* inner = graph.producer_if(node.operands[0], CoreOp::kBroadcastInDim); inner != nullptr) {
    const Ints joined = MapAxes(inner->attrs.Ints("broadcast_dimensions"), dimensions);
    return AddBroadcast(node.name, inner->operands[0], joined, type, graph);
  }
  if (const Node* inner = graph.producer_if(node.operands[0], CoreOp::kReshape); inner != nullptr) {
    const ValueId operand = inner->operands[0];
    if (const auto axes = WithUnitAxes(graph.type(operand), graph.type(node.operands[0])); axes.has_value()) {
      return AddBroadcast(node.name, operand, MapAxes(*axes, dimensions), type, graph);
    }
  }
  return std::nullopt;
}

// Tells whether the slice keeps an axis as it is.
bool KeepsAxis(const Node& slice, size_t axis, const Dim& size) {
  const SliceRange range = RangeOf(slice, axis);
  return range.start == 0 && size.size.is(range.limit) && (range.stride == 1 || size.size.is(0) || size.size.is(1));
}

// Cuts the operand before it is repeated.
Result SliceOfBroadcast(const Node& node, const Node& broadcast, GraphRewriter& graph) {
  const ValueId operand = broadcast.operands[0];
  const TensorType& from = graph.type(operand);
  const TensorType& repeated = graph.type(node.operands[0]);
  const Ints dimensions = broadcast.attrs.Ints("broadcast_dimensions");
  if (!IsExact(from) || !IsExact(graph.result_type())) return std::nullopt;
  SliceRanges ranges;
  TensorType cut = {.dtype = from.dtype, .shape = {}};
  bool cuts = false;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const size_t axis = static_cast<size_t>(dimensions[i]);
    if (from.shape[i].size.is(1) && !repeated.shape[axis].size.is(1)) {
      ranges.push_back({0, 1, 1});
      cut.shape.push_back(from.shape[i]);
      continue;
    }
    if (!(from.shape[i] == repeated.shape[axis])) return std::nullopt;  // only the run knows whether it repeats
    if (KeepsAxis(node, axis, from.shape[i])) {
      if (!from.shape[i].is_static()) return std::nullopt;
      ranges.push_back({0, from.shape[i].size.constant(), 1});
    } else {
      cuts = true;
      ranges.push_back(RangeOf(node, axis));
    }
    cut.shape.push_back(graph.result_type().shape[axis]);
  }
  const TensorType type = graph.result_type();
  const std::string name = node.name;
  const ValueId source = cuts ? graph.Add(CoreOp::kSlice, name, SliceAttributes(ranges), {operand}, cut) : operand;
  return AddBroadcast(name, source, dimensions, type, graph);
}

Result RewriteSlice(const Node& node, GraphRewriter& graph) {
  const TensorType& from = graph.type(node.operands[0]);
  bool keeps_all = true;
  for (size_t axis = 0; axis < from.shape.size(); ++axis) {
    keeps_all = keeps_all && KeepsAxis(node, axis, from.shape[axis]);
  }
  if (keeps_all) return graph.Same(node.operands[0]);
  if (const Node* inner = graph.producer_if(node.operands[0], CoreOp::kSlice); inner != nullptr) {
    SliceRanges ranges;
    for (size_t axis = 0; axis < from.shape.size(); ++axis) {
      const int64_t length = graph.result_type().shape[axis].size.constant();
      const std::optional<SliceRange> range = Joined(RangeOf(*inner, axis), RangeOf(node, axis), length);
      if (!range.has_value()) return std::nullopt;
      ranges.push_back(*range);
    }
    return graph.Add(CoreOp::kSlice, node.name, SliceAttributes(ranges), {inner->operands[0]}, graph.result_type());
  }
  if (const Node* inner = graph.producer_if(node.operands[0], CoreOp::kBroadcastInDim); inner != nullptr) {
    return SliceOfBroadcast(node, *inner, graph);
  }
  return std::nullopt;
}

Result RewriteReverse(const Node& node, GraphRewriter& graph) {
  const Ints& dimensions = node.attrs.Ints("dimensions");
  const ValueId operand = node.operands[0];
  const TensorType& type = graph.result_type();
  const Node* broadcast = graph.producer_if(operand, CoreOp::kBroadcastInDim);
  const auto turns = [&](int64_t axis) {
    if (type.shape[static_cast<size_t>(axis)].size.is(0) || type.shape[static_cast<size_t>(axis)].size.is(1)) {
      return false;
    }
    if (broadcast == nullptr) return true;
    const Ints& repeated = broadcast->attrs.Ints("broadcast_dimensions");
    for (size_t i = 0; i < repeated.size(); ++i) {
      if (repeated[i] == axis) return !graph.type(broadcast->operands[0]).shape[i].size.is(1);
    }
    return false;
  };
  Ints turned;
  std::copy_if(dimensions.begin(), dimensions.end(), std::back_inserter(turned), turns);
  ValueId source = operand;
  if (const Node* inner = graph.producer_if(operand, CoreOp::kReverse); inner != nullptr) {
    source = inner->operands[0];
    for (int64_t axis : inner->attrs.Ints("dimensions")) {
      const auto it = std::find(turned.begin(), turned.end(), axis);
      if (it == turned.end()) {
        turned.push_back(axis);
      } else {
        turned.erase(it);
      }
    }
  }
  if (turned.empty()) return graph.Same(source);
  if (source == operand && turned.size() == dimensions.size()) return std::nullopt;
  Attributes attrs = node.attrs;
  attrs.Set("dimensions", std::move(turned));
  return graph.Add(CoreOp::kReverse, node.name, std::move(attrs), {source}, type);
}

// A window whose place is known is a slice.
Result RewriteDynamicSlice(const Node& node, GraphRewriter& graph) {
  const Node* constant = graph.producer_if(node.operands[1], CoreOp::kConstant);
  if (constant == nullptr) return std::nullopt;
  const LiteralPtr starts = constant->attrs.GetLiteral("value");
  const TensorType& from = graph.type(node.operands[0]);
  const Ints& sizes = node.attrs.Ints("slice_sizes");
  const Ints axes = StartAxes(node.attrs, from.rank());
  if (starts->num_elements() != from.rank()) return std::nullopt;
  SliceRanges ranges(sizes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(axes[i]);
    int64_t start = starts->dtype() == DType::kI32 ? starts->values<int32_t>()[i] : starts->values<int64_t>()[i];
    start = std::max<int64_t>(start, 0);
    // If the size is not known, only a window at the beginning is certain to fit.
    if (from.shape[axis].is_static()) {
      start = std::min(start, from.shape[axis].size.constant() - sizes[axis]);
    } else if (start != 0) {
      return std::nullopt;
    }
    ranges[axis] = {start, start + sizes[axis], 1};
  }
  return graph.Add(CoreOp::kSlice, node.name, SliceAttributes(ranges), {node.operands[0]}, graph.result_type());
}

Result RewriteLayout(const Node& node, GraphRewriter& graph) {
  if (node.op->family != "core") return std::nullopt;
  switch (static_cast<CoreOp>(node.op->index)) {
    case CoreOp::kTranspose:
      return RewriteTranspose(node, graph);
    case CoreOp::kReshape:
      return RewriteReshape(node, graph);
    case CoreOp::kBroadcastInDim:
      return RewriteBroadcast(node, graph);
    case CoreOp::kSlice:
      return RewriteSlice(node, graph);
    case CoreOp::kReverse:
      return RewriteReverse(node, graph);
    case CoreOp::kDynamicSlice:
      return RewriteDynamicSlice(node, graph);
    case CoreOp::kPad:
      if (!IsZeros(node.attrs.Ints("edge_padding_low")) || !IsZeros(node.attrs.Ints("edge_padding_high")) ||
          !IsZeros(node.attrs.Ints("interior_padding"))) {
        return std::nullopt;
      }
      return graph.Same(node.operands[0]);
    case CoreOp::kConcatenate:
      return node.operands.size() == 1 ? graph.Same(node.operands[0]) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<bool> SimplifyLayout(Graph* graph, const PassOptions&) {
  return GraphRewriter::Run(graph, &RewriteLayout);
}

}  // namespace tensord
