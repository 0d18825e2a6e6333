#include "engine/passes/lowering/expand_composites.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/ops/triangle.h"
#include "engine/passes/rewriting/graph_rewriter.h"
#include "engine/passes/rewriting/splat.h"

namespace tensord {
namespace {

using Result = std::optional<ValueId>;

// Tells whether the op can share a kernel with its neighbours.
bool Joins(const OpDef& op) { return op.has(kElementwise) || Is(op, CoreOp::kReduce); }

// Positions along an axis are counted in I32 where they fit.
DType PositionDType(const TensorType& type) {
  constexpr int64_t kMost = int64_t{1} << 30;
  for (const Dim& dim : type.shape) {
    if (!dim.is_static() || dim.size.constant() > kMost) return DType::kI64;
  }
  return DType::kI32;
}

ValueId AddPositions(const Node& node, const TensorType& type, int64_t axis, GraphRewriter& graph) {
  Attributes attrs(Def(CoreOp::kIota).attrs);
  attrs.Set("type", SharedType(type)).Set("dimension", axis);
  return graph.Add(CoreOp::kIota, node.name, std::move(attrs), {}, type);
}

// Keeps where the column is at most (at least) the row and the diagonal together.
ValueId ExpandTriangle(const Node& node, bool lower, GraphRewriter& graph) {
  const TensorType type = graph.result_type();
  const ValueId operand = node.operands[0];
  const auto [row_axis, column_axis] = MatrixAxes(node.attrs);
  TensorType positions = type;
  positions.dtype = PositionDType(type);
  // Beyond the longest axis every diagonal is alike, and the sum must not overflow.
  const int64_t most = positions.dtype == DType::kI32 ? int64_t{1} << 30 : int64_t{1} << 60;
  const int64_t diagonal = std::clamp(node.attrs.Int("diagonal"), -most, most);
  Literal number = positions.dtype == DType::kI32 ? Literal::Scalar<int32_t>(static_cast<int32_t>(diagonal))
                                                  : Literal::Scalar<int64_t>(diagonal);
  const ValueId rows = AddPositions(node, positions, row_axis, graph);
  const ValueId columns = AddPositions(node, positions, column_axis, graph);
  ValueId bound = rows;
  if (diagonal != 0) {
    const ValueId offset = AddSplat(node.name, std::move(number), positions, &graph);
    bound = graph.Add(CoreOp::kAdd, node.name, Attributes(Def(CoreOp::kAdd).attrs), {rows, offset}, positions);
  }
  Attributes direction(Def(CoreOp::kCompare).attrs);
  direction.Set("direction", static_cast<int64_t>(lower ? CompareDirection::kLe : CompareDirection::kGe));
  TensorType mask = type;
  mask.dtype = DType::kBool;
  const ValueId keeps = graph.Add(CoreOp::kCompare, node.name, std::move(direction), {columns, bound}, std::move(mask));
  Literal zero = VisitDType(type.dtype, []<typename T>(TypeTag<T>) { return Literal::Scalar<T>(T()); });
  const ValueId zeros = AddSplat(node.name, std::move(zero), type, &graph);
  return graph.Add(CoreOp::kSelect, node.name, Attributes(Def(CoreOp::kSelect).attrs), {keeps, operand, zeros}, type);
}

Result ExpandGather(const Node& node, GraphRewriter& graph) {
  std::vector<int64_t> sizes;
  for (const DimExpr& size : node.attrs.Dims("slice_sizes")) {
    if (!size.is_constant()) return std::nullopt;
    sizes.push_back(size.constant());
  }
  const OpDef& op = Def(CoreOp::kGather);
  Attributes attrs(op.attrs);
  for (const AttrDef& attr : op.attrs) {
    if (attr.name == "slice_sizes") continue;
    if (attr.kind == AttrKind::kInt) {
      attrs.Set(attr.name, node.attrs.Int(attr.name));
    } else {
      attrs.Set(attr.name, node.attrs.Ints(attr.name));
    }
  }
  attrs.Set("slice_sizes", std::move(sizes));
  const ValueId operand = node.operands[0], indices = node.operands[1];
  return graph.Add(CoreOp::kGather, node.name, std::move(attrs), {operand, indices}, graph.result_type());
}

}  // namespace

absl::StatusOr<bool> ExpandComposites(Graph* graph, const PassOptions&) {
  std::vector<bool> is_joined(static_cast<size_t>(graph->num_values()));  // by value: whether such an op reads it
  bool may_expand = false;
  for (const Node& node : graph->nodes()) {
    may_expand = may_expand || Is(*node.op, CoreOp::kTril) || Is(*node.op, CoreOp::kTriu) ||
                 Is(*node.op, CoreOp::kGatherDynamicSliceSizes);
    if (!Joins(*node.op)) continue;
    for (ValueId operand : node.operands) is_joined[static_cast<size_t>(operand.index)] = true;
  }
  if (!may_expand) return false;
  return GraphRewriter::Run(graph, [&](const Node& node, GraphRewriter& rewriter) -> Result {
    if (Is(*node.op, CoreOp::kGatherDynamicSliceSizes)) return ExpandGather(node, rewriter);
    const bool lower = Is(*node.op, CoreOp::kTril);
    if ((!lower && !Is(*node.op, CoreOp::kTriu)) || !IsExact(rewriter.result_type())) return std::nullopt;
    const Node* producer = rewriter.producer(node.operands[0]);
    const bool joins = is_joined[static_cast<size_t>(node.first_result.index)] ||
                       (producer != nullptr && producer->body == nullptr && producer->op->has(kElementwise));
    return joins ? Result(ExpandTriangle(node, lower, rewriter)) : std::nullopt;
  });
}

}  // namespace tensord
