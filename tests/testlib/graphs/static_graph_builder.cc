#include "tests/testlib/graphs/static_graph_builder.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/families/all_families.h"
#include "engine/ir/verifier.h"

namespace tensord {
namespace {

template <typename T>
T Checked(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::cerr << "a graph that a test builds is refused: " << value.status() << "\n";
    std::abort();
  }
  return *std::move(value);
}

std::vector<DimExpr> Sizes(const Shape& shape) { return {shape.begin(), shape.end()}; }

TensorType TypeOf(DType dtype, const Shape& shape) { return ToTensorType({.dtype = dtype, .shape = shape}); }

LiteralPtr ScalarLiteral(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return std::make_shared<const Literal>(Literal::Scalar(value));
    case DType::kF16:
      return std::make_shared<const Literal>(Literal::Scalar(Float16(static_cast<float>(value))));
    case DType::kBF16:
      return std::make_shared<const Literal>(Literal::Scalar(BFloat16(static_cast<float>(value))));
    case DType::kI32:
      return std::make_shared<const Literal>(Literal::Scalar(static_cast<int32_t>(value)));
    case DType::kI64:
      return std::make_shared<const Literal>(Literal::Scalar(static_cast<int64_t>(value)));
    default:
      return std::make_shared<const Literal>(Literal::Scalar(static_cast<float>(value)));
  }
}

const OpDef& Named(absl::string_view name) {
  const OpDef* op = FamilyRegistry().Find(name);
  if (op == nullptr) {
    std::cerr << "a graph that a test builds has an op that no family has: " << name << "\n";
    std::abort();
  }
  return *op;
}

}  // namespace

ValueId StaticGraphBuilder::Input(absl::string_view name, DType dtype, const Shape& shape) {
  inputs_.push_back(graph_.AddInput(name, TypeOf(dtype, shape)));
  return inputs_.back();
}

Graph StaticGraphBuilder::Take() {
  Graph ordered;
  ordered.set_name(graph_.name());
  std::vector<ValueId> moved(static_cast<size_t>(graph_.num_values()), ValueId{-1});
  const auto at = [&](ValueId v) -> ValueId& { return moved[static_cast<size_t>(v.index)]; };
  for (const ValueId input : inputs_) {
    at(input) = ordered.AddInput(graph_.inputs()[static_cast<size_t>(ordered.num_values())].name, graph_.type(input));
  }
  for (const Node& node : graph_.nodes()) {
    Node copy = node;
    for (ValueId& operand : copy.operands) operand = at(operand);
    const ValueId first = ordered.AddNode(std::move(copy));
    for (int32_t r = 0; r < node.num_results; ++r) {
      const ValueId result{node.first_result.index + r};
      at(result) = ValueId{first.index + r};
      ordered.set_type(at(result), graph_.type(result));
    }
  }
  for (const GraphOutput& output : graph_.outputs()) ordered.AddOutput(output.name, at(output.value));
  return ordered;
}

Shape StaticGraphBuilder::ShapeOf(ValueId v) const { return ToConcreteType(graph_.type(v)).shape; }

ValueId StaticGraphBuilder::Apply(CoreOp op, const std::vector<ValueId>& operands, Attributes attrs) {
  return Apply(Def(op), operands, std::move(attrs)).front();
}

std::vector<ValueId> StaticGraphBuilder::ApplyNamed(absl::string_view op, const std::vector<ValueId>& operands,
                                                    Attributes attrs) {
  return Apply(Named(op), operands, std::move(attrs));
}

Attributes StaticGraphBuilder::AttrsOf(absl::string_view op) { return Attributes(Named(op).attrs); }

std::vector<ValueId> StaticGraphBuilder::Apply(const OpDef& op, const std::vector<ValueId>& operands,
                                               Attributes attrs) {
  const int32_t index = static_cast<int32_t>(graph_.nodes().size());
  Node node{
      .name = absl::StrCat(op.name, "_", index), .op = &op, .attrs = std::move(attrs), .num_results = op.num_results};
  node.operands.assign(operands.begin(), operands.end());
  std::vector<ShapeGuard> guards;
  ResultTypes types = Checked(InferNode(graph_, node, index, &guards));
  const ValueId first = graph_.AddNode(std::move(node));
  std::vector<ValueId> results;
  for (TensorType& type : types) {
    results.push_back(ValueId{first.index + static_cast<int32_t>(results.size())});
    graph_.set_type(results.back(), std::move(type));
  }
  return results;
}

ValueId StaticGraphBuilder::Scalar(DType dtype, double value) {
  return Apply(CoreOp::kConstant, {}, AttrsOf(CoreOp::kConstant).Set("value", ScalarLiteral(dtype, value)));
}

ValueId StaticGraphBuilder::Iota(DType dtype, const Shape& shape, int64_t axis) {
  return Apply(CoreOp::kIota, {}, AttrsOf(CoreOp::kIota).Set("type", TypeOf(dtype, shape)).Set("dimension", axis));
}

ValueId StaticGraphBuilder::Unary(CoreOp op, ValueId x) { return Apply(op, {x}, {}); }

ValueId StaticGraphBuilder::Binary(CoreOp op, ValueId a, ValueId b) {
  if (ShapeOf(b).empty() && !ShapeOf(a).empty()) b = Broadcast(b, ShapeOf(a), {});
  return Apply(op, {a, b}, {});
}

ValueId StaticGraphBuilder::Compare(CompareDirection direction, ValueId a, ValueId b) {
  if (ShapeOf(b).empty() && !ShapeOf(a).empty()) b = Broadcast(b, ShapeOf(a), {});
  return Apply(CoreOp::kCompare, {a, b}, AttrsOf(CoreOp::kCompare).Set("direction", static_cast<int64_t>(direction)));
}

ValueId StaticGraphBuilder::Select(ValueId pred, ValueId on_true, ValueId on_false) {
  if (ShapeOf(on_false).empty()) on_false = Broadcast(on_false, ShapeOf(on_true), {});
  return Apply(CoreOp::kSelect, {pred, on_true, on_false}, {});
}

ValueId StaticGraphBuilder::Clamp(ValueId low, ValueId x, ValueId high) {
  return Apply(CoreOp::kClamp, {low, x, high}, {});
}

ValueId StaticGraphBuilder::Convert(ValueId x, DType dtype) {
  return Apply(CoreOp::kConvert, {x}, AttrsOf(CoreOp::kConvert).Set("dtype", dtype));
}

ValueId StaticGraphBuilder::Broadcast(ValueId x, const Shape& shape, const Axes& axes) {
  return Apply(CoreOp::kBroadcastInDim, {x},
               AttrsOf(CoreOp::kBroadcastInDim).Set("shape", Sizes(shape)).Set("broadcast_dimensions", axes));
}

ValueId StaticGraphBuilder::Transpose(ValueId x, const Axes& permutation) {
  return Apply(CoreOp::kTranspose, {x}, AttrsOf(CoreOp::kTranspose).Set("permutation", permutation));
}

ValueId StaticGraphBuilder::Reshape(ValueId x, const Shape& shape) {
  return Apply(CoreOp::kReshape, {x}, AttrsOf(CoreOp::kReshape).Set("shape", Sizes(shape)));
}

ValueId StaticGraphBuilder::Slice(ValueId x, const Axes& starts, const Axes& limits) {
  return Apply(CoreOp::kSlice, {x}, AttrsOf(CoreOp::kSlice).Set("start_indices", starts).Set("limit_indices", limits));
}

ValueId StaticGraphBuilder::Pad(ValueId x, double value, const Axes& low, const Axes& high) {
  return Apply(CoreOp::kPad, {x, Scalar(DTypeOf(x), value)},
               AttrsOf(CoreOp::kPad).Set("edge_padding_low", low).Set("edge_padding_high", high));
}

ValueId StaticGraphBuilder::Concatenate(const std::vector<ValueId>& parts, int64_t axis) {
  return Apply(CoreOp::kConcatenate, parts, AttrsOf(CoreOp::kConcatenate).Set("dimension", axis));
}

ValueId StaticGraphBuilder::Reduce(ReduceKind kind, ValueId x, const Axes& axes) {
  return Apply(CoreOp::kReduce, {x},
               AttrsOf(CoreOp::kReduce).Set("kind", static_cast<int64_t>(kind)).Set("dimensions", axes));
}

ValueId StaticGraphBuilder::ReduceAndRepeat(ReduceKind kind, ValueId x, const Axes& axes) {
  Axes kept;
  for (int64_t axis = 0; axis < static_cast<int64_t>(ShapeOf(x).size()); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) kept.push_back(axis);
  }
  return Broadcast(Reduce(kind, x, axes), ShapeOf(x), kept);
}

ValueId StaticGraphBuilder::Dot(ValueId lhs, ValueId rhs, const Axes& lhs_contracted, const Axes& rhs_contracted,
                                const Axes& lhs_batch, const Axes& rhs_batch) {
  return Apply(CoreOp::kDotGeneral, {lhs, rhs},
               AttrsOf(CoreOp::kDotGeneral)
                   .Set("lhs_contracting_dimensions", lhs_contracted)
                   .Set("rhs_contracting_dimensions", rhs_contracted)
                   .Set("lhs_batching_dimensions", lhs_batch)
                   .Set("rhs_batching_dimensions", rhs_batch));
}

ValueId StaticGraphBuilder::DynamicUpdateSlice(ValueId x, ValueId update, ValueId starts) {
  return Apply(CoreOp::kDynamicUpdateSlice, {x, update, starts}, AttrsOf(CoreOp::kDynamicUpdateSlice));
}

}  // namespace tensord
