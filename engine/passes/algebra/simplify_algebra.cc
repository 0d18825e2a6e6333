#include "engine/passes/algebra/simplify_algebra.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/ops/contraction.h"
#include "engine/passes/algebra/binary_laws.h"
#include "engine/passes/rewriting/graph_rewriter.h"
#include "engine/passes/rewriting/splat.h"

namespace tensord {
namespace {

using Result = std::optional<ValueId>;
using Ints = std::vector<int64_t>;

Attributes NoAttributes(CoreOp op) { return Attributes(Def(op).attrs); }

Result UndoneBy(const Node& node, CoreOp op, GraphRewriter& graph) {
  const Node* inner = graph.producer_if(node.operands[0], op);
  return inner == nullptr ? std::nullopt : graph.Same(inner->operands[0]);
}

Result RewriteAbs(const Node& node, GraphRewriter& graph) {
  if (graph.producer_if(node.operands[0], CoreOp::kAbs) != nullptr) return graph.Same(node.operands[0]);
  const Node* negated = graph.producer_if(node.operands[0], CoreOp::kNegate);
  if (negated == nullptr) return std::nullopt;
  return graph.Add(CoreOp::kAbs, node.name, NoAttributes(CoreOp::kAbs), {negated->operands[0]}, graph.result_type());
}

// Floor, ceil and round_nearest_even of a whole number.
Result RewriteRounding(const Node& node, GraphRewriter& graph) {
  for (const CoreOp op : {CoreOp::kFloor, CoreOp::kCeil, CoreOp::kRoundNearestEven}) {
    if (graph.producer_if(node.operands[0], op) != nullptr) return graph.Same(node.operands[0]);
  }
  return std::nullopt;
}

Result RewritePart(const Node& node, size_t part, GraphRewriter& graph) {
  if (const Node* complex = graph.producer_if(node.operands[0], CoreOp::kComplex); complex != nullptr) {
    return graph.Same(complex->operands[part]);
  }
  if (kComplexes.Contains(graph.type(node.operands[0]).dtype)) return std::nullopt;
  return part == 0 ? graph.Same(node.operands[0]) : AddNumber(node, 0, graph);
}

CompareDirection Opposite(CompareDirection direction) {
  switch (direction) {
    case CompareDirection::kEq:
      return CompareDirection::kNe;
    case CompareDirection::kNe:
      return CompareDirection::kEq;
    case CompareDirection::kLt:
      return CompareDirection::kGe;
    case CompareDirection::kLe:
      return CompareDirection::kGt;
    case CompareDirection::kGt:
      return CompareDirection::kLe;
    case CompareDirection::kGe:
    case CompareDirection::kUnspecified:
      break;
  }
  return CompareDirection::kLt;
}

Result RewriteNot(const Node& node, GraphRewriter& graph) {
  if (const Result twice = UndoneBy(node, CoreOp::kNot, graph); twice.has_value()) return twice;
  const Node* compare = graph.producer_if(node.operands[0], CoreOp::kCompare);
  if (compare == nullptr) return std::nullopt;
  const auto direction = static_cast<CompareDirection>(compare->attrs.Int("direction"));
  const bool is_equality = direction == CompareDirection::kEq || direction == CompareDirection::kNe;
  // With a NaN neither of two numbers is below the other.
  if (!is_equality && !(kIntegers | kBoolOnly).Contains(graph.type(compare->operands[0]).dtype)) return std::nullopt;
  Attributes attrs = compare->attrs;
  attrs.Set("direction", static_cast<int64_t>(Opposite(direction)));
  const absl::InlinedVector<ValueId, 3> operands = compare->operands;
  return graph.Add(CoreOp::kCompare, node.name, std::move(attrs), operands, graph.result_type());
}

Result RewriteSelect(const Node& node, GraphRewriter& graph) {
  const ValueId pred = node.operands[0], on_true = node.operands[1], on_false = node.operands[2];
  if (on_true == on_false) return graph.Same(on_true);
  if (const LiteralPtr known = SplatOf(graph, pred); known != nullptr) {
    return graph.Same(IsNumber(known, 1) ? on_true : on_false);
  }
  if (const Node* opposite = graph.producer_if(pred, CoreOp::kNot);
      opposite != nullptr && graph.type(on_false) == graph.result_type()) {
    return graph.Add(CoreOp::kSelect, node.name, NoAttributes(CoreOp::kSelect),
                     {opposite->operands[0], on_false, on_true}, graph.result_type());
  }
  if (graph.type(on_true).dtype == DType::kBool && IsNumber(SplatOf(graph, on_true), 1) &&
      IsNumber(SplatOf(graph, on_false), 0)) {
    return graph.Same(pred);
  }
  return std::nullopt;
}

Result RewriteClamp(const Node& node, GraphRewriter& graph) {
  const ValueId low = node.operands[0], x = node.operands[1], high = node.operands[2];
  if (IsLeast(SplatOf(graph, low)) && IsGreatest(SplatOf(graph, high))) return graph.Same(x);
  const Node* inner = graph.producer_if(x, CoreOp::kClamp);
  if (inner != nullptr && inner->operands[0] == low && inner->operands[2] == high) return graph.Same(x);
  return std::nullopt;
}

// Tells whether every number of the narrow dtype is one of the wide dtype, so that converting there and on loses
// nothing.
bool HoldsAll(DType wide, DType narrow) {
  switch (narrow) {
    case DType::kBool:
      return true;
    case DType::kI32:
      return DTypeSet{DType::kI64, DType::kF64, DType::kC128}.Contains(wide);
    case DType::kF16:
    case DType::kBF16:
      return DTypeSet{DType::kF32, DType::kF64, DType::kC64, DType::kC128}.Contains(wide);
    case DType::kF32:
      return DTypeSet{DType::kF64, DType::kC64, DType::kC128}.Contains(wide);
    case DType::kF64:
    case DType::kC64:
      return wide == DType::kC128;
    default:
      return false;
  }
}

Result RewriteConvert(const Node& node, GraphRewriter& graph) {
  if (const Result same = graph.Same(node.operands[0]); same.has_value()) return same;
  const Node* inner = graph.producer_if(node.operands[0], CoreOp::kConvert);
  if (inner == nullptr) return std::nullopt;
  const ValueId source = inner->operands[0];
  if (!HoldsAll(inner->attrs.GetDType("dtype"), graph.type(source).dtype)) return std::nullopt;
  return graph.Add(CoreOp::kConvert, node.name, node.attrs, {source}, graph.result_type());
}

// A sum begins with 0: one that adds a single -0 to it is 0.
ValueId AddedToZero(const Node& node, ValueId value, GraphRewriter& graph) {
  const TensorType type = graph.type(value);
  if (!kInexact.Contains(type.dtype)) return value;
  Literal zero = VisitDType(type.dtype, []<typename T>(TypeTag<T>) { return Literal::Scalar<T>(T()); });
  const ValueId zeros = AddSplat(node.name, std::move(zero), type, &graph);
  return graph.Add(CoreOp::kAdd, node.name, NoAttributes(CoreOp::kAdd), {value, zeros}, type);
}

bool AreOne(const TensorType& type, const Ints& axes) {
  return std::all_of(axes.begin(), axes.end(),
                     [&](int64_t axis) { return type.shape[static_cast<size_t>(axis)].size.is(1); });
}

// Over one element each.
Result RewriteReduce(const Node& node, GraphRewriter& graph) {
  const TensorType type = graph.result_type();
  const auto kind = static_cast<ReduceKind>(node.attrs.Int("kind"));
  if (!AreOne(graph.type(node.operands[0]), node.attrs.Ints("dimensions")) || !IsExact(type)) return std::nullopt;
  // 1*z differs from z if a part of z is infinite, and an extreme differs if a part is NaN.
  if (kind != ReduceKind::kSum && kComplexes.Contains(type.dtype)) return std::nullopt;
  const bool same = graph.type(node.operands[0]) == type;
  const ValueId value = same ? node.operands[0] : graph.AddReshape(node.name, node.operands[0], type);
  return kind == ReduceKind::kSum ? AddedToZero(node, value, graph) : value;
}

// Returns one side of a product without a sum, spread over the result: its free axes begin at `first_free`, its batch
// axes at `first_batch` of the result's.
ValueId Spread(const Node& node, ValueId operand, const Ints& contracting, const Ints& batch, size_t first_free,
               size_t first_batch, GraphRewriter& graph) {
  const TensorType type = graph.result_type();
  TensorType kept = {.dtype = graph.type(operand).dtype, .shape = {}};
  Ints dimensions;
  for (int64_t axis = 0; axis < graph.type(operand).rank(); ++axis) {
    if (std::find(contracting.begin(), contracting.end(), axis) != contracting.end()) continue;
    const auto place = std::find(batch.begin(), batch.end(), axis);
    dimensions.push_back(static_cast<int64_t>(
        place == batch.end() ? first_free++ : first_batch + static_cast<size_t>(place - batch.begin())));
    kept.shape.push_back(graph.type(operand).shape[static_cast<size_t>(axis)]);
  }
  if (!contracting.empty()) operand = graph.AddReshape(node.name, operand, kept);
  if (kept.dtype != type.dtype) {
    kept.dtype = type.dtype;
    Attributes attrs = NoAttributes(CoreOp::kConvert);
    attrs.Set("dtype", type.dtype);
    operand = graph.Add(CoreOp::kConvert, node.name, std::move(attrs), {operand}, kept);
  }
  if (kept == type && std::is_sorted(dimensions.begin(), dimensions.end())) return operand;
  std::vector<DimExpr> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.size);
  Attributes attrs = NoAttributes(CoreOp::kBroadcastInDim);
  attrs.Set("shape", std::move(shape)).Set("broadcast_dimensions", std::move(dimensions));
  return graph.Add(CoreOp::kBroadcastInDim, node.name, std::move(attrs), {operand}, type);
}

// A product that adds nothing up. Complex ones are left alone: their kernels round the parts as sums of products.
Result RewriteDot(const Node& node, GraphRewriter& graph) {
  const ValueId lhs = node.operands[0], rhs = node.operands[1];
  const Ints &lc = node.attrs.Ints("lhs_contracting_dimensions"), &rc = node.attrs.Ints("rhs_contracting_dimensions"),
             &lb = node.attrs.Ints("lhs_batching_dimensions"), &rb = node.attrs.Ints("rhs_batching_dimensions");
  const TensorType type = graph.result_type();
  if (AlgebraOf(node.attrs) != Algebra::kStandard) return std::nullopt;
  if (!node.attrs.Ints("result_permutation").empty()) return std::nullopt;
  if (!AreOne(graph.type(lhs), lc) || !AreOne(graph.type(rhs), rc)) return std::nullopt;
  if (!IsExact(type) || kComplexes.Contains(type.dtype)) return std::nullopt;
  const size_t lhs_free = FreeAxes(graph.type(lhs).rank(), lc, lb).size();
  const size_t free = lhs_free + FreeAxes(graph.type(rhs).rank(), rc, rb).size();
  if (!IsExact(graph.type(lhs)) || !IsExact(graph.type(rhs))) return std::nullopt;
  const ValueId a = Spread(node, lhs, lc, lb, 0, free, graph);
  const ValueId b = Spread(node, rhs, rc, rb, lhs_free, free, graph);
  const ValueId product = graph.Add(CoreOp::kMultiply, node.name, NoAttributes(CoreOp::kMultiply), {a, b}, type);
  return AddedToZero(node, product, graph);
}

Result RewriteAlgebra(const Node& node, GraphRewriter& graph) {
  if (node.op->family != "core") return std::nullopt;
  if (node.op->op_class == OpClass::kBinary) return ApplyBinaryLaw(node, graph);
  switch (static_cast<CoreOp>(node.op->index)) {
    case CoreOp::kNegate:
      return UndoneBy(node, CoreOp::kNegate, graph);
    case CoreOp::kNot:
      return RewriteNot(node, graph);
    case CoreOp::kAbs:
      return RewriteAbs(node, graph);
    case CoreOp::kFloor:
    case CoreOp::kCeil:
    case CoreOp::kRoundNearestEven:
      return RewriteRounding(node, graph);
    case CoreOp::kReal:
      return RewritePart(node, 0, graph);
    case CoreOp::kImag:
      return RewritePart(node, 1, graph);
    case CoreOp::kCompare:
      return ApplyCompareLaw(node, graph);
    case CoreOp::kSelect:
      return RewriteSelect(node, graph);
    case CoreOp::kClamp:
      return RewriteClamp(node, graph);
    case CoreOp::kConvert:
      return RewriteConvert(node, graph);
    case CoreOp::kReduce:
      return RewriteReduce(node, graph);
    case CoreOp::kDotGeneral:
      return RewriteDot(node, graph);
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<bool> SimplifyAlgebra(Graph* graph, const PassOptions&) {
  if (graph->algebra() != Algebra::kStandard) return false;
  return GraphRewriter::Run(graph, &RewriteAlgebra);
}

}  // namespace tensord
