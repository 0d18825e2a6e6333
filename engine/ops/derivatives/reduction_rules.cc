#include <algorithm>
#include <utility>

#include "engine/ops/derivatives/extreme_tangent.h"
#include "engine/ops/derivatives/rules.h"
#include "engine/ops/derivatives/terms.h"

namespace tensord {
namespace {

std::vector<int64_t> KeptAxes(size_t rank, const std::vector<int64_t>& reduced) {
  std::vector<int64_t> kept;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(axis)) == reduced.end()) {
      kept.push_back(static_cast<int64_t>(axis));
    }
  }
  return kept;
}

}  // namespace

ValueId ExtremeTangent(DerivativeBuilder& graph, const DualTensor& operand, DType dtype, ValueId result,
                       const SymbolicShape& result_shape, const std::vector<int64_t>& reduced) {
  Terms e(graph);
  const ValueId repeated = e.Broadcast(result, operand.shape, KeptAxes(operand.shape.size(), reduced));
  const ValueId wins = e.Compare(CompareDirection::kEq, operand.x, repeated);
  const DType counted = CountingType(dtype), summed = SummingType(dtype);
  const TensorType counts{.dtype = counted, .shape = operand.shape};
  ValueId count = e.Reduce(ReduceKind::kSum, e.Select(wins, e.Full(1, counts), e.Zeros(counts)), reduced);
  const ValueId one = e.Full(1, {.dtype = counted, .shape = result_shape});
  count = e.Binary(CoreOp::kMaximum, count, one);  // none where there is no element
  const ValueId none = e.Zeros({.dtype = summed, .shape = operand.shape});
  const ValueId sum = e.Reduce(ReduceKind::kSum, e.Select(wins, e.Convert(operand.t, summed), none), reduced);
  return e.Convert(e.Mul(sum, e.Convert(e.Div(one, count), summed)), dtype);
}

namespace {

DualTensor HalfOf(Terms& e, const DualTensor& whole, size_t axis, int64_t start, int64_t limit) {
  std::vector<int64_t> starts(whole.shape.size(), 0), limits;
  for (const Dim& dim : whole.shape) limits.push_back(dim.size.constant());
  starts[axis] = start;
  limits[axis] = limit;
  DualTensor part{
      .x = e.Slice(whole.x, starts, limits, {}), .t = e.Slice(whole.t, starts, limits, {}), .shape = whole.shape};
  part.shape[axis] = Dim(limit - start);
  return part;
}

ValueId Joined(DerivativeBuilder& graph, size_t axis, ValueId a, ValueId b) {
  Attributes attrs(Def(CoreOp::kConcatenate).attrs);
  attrs.Set("dimension", static_cast<int64_t>(axis));
  return graph.Add(Def(CoreOp::kConcatenate), std::move(attrs), {a, b});
}

// Multiplies halves until one element is left: no zero divides, and derivatives of any order follow.
DualTensor ProductByHalves(DerivativeBuilder& graph, DualTensor dual, size_t axis) {
  Terms e(graph);
  while (dual.shape[axis].size.constant() > 1) {
    const int64_t n = dual.shape[axis].size.constant(), half = n / 2;
    const DualTensor a = HalfOf(e, dual, axis, 0, half), b = HalfOf(e, dual, axis, half, 2 * half);
    DualTensor next{.x = e.Mul(a.x, b.x), .t = e.Add(e.Mul(a.t, b.x), e.Mul(b.t, a.x)), .shape = a.shape};
    if (n % 2 != 0) {
      const DualTensor rest = HalfOf(e, dual, axis, 2 * half, n);
      next.x = Joined(graph, axis, next.x, rest.x);
      next.t = Joined(graph, axis, next.t, rest.t);
      next.shape[axis] = Dim(half + 1);
    }
    dual = next;
  }
  const std::vector<int64_t> reduced = {static_cast<int64_t>(axis)};
  dual.x = e.Reduce(ReduceKind::kProduct, dual.x, reduced);  // of one element or none
  dual.t = e.Reduce(ReduceKind::kSum, dual.t, reduced);
  dual.shape.erase(dual.shape.begin() + static_cast<ptrdiff_t>(axis));
  return dual;
}

// Multiplies all other elements for each: for an axis of which only the run knows the size.
DualTensor ProductByOthers(DerivativeBuilder& graph, DualTensor dual, size_t axis, DType dtype) {
  Terms e(graph);
  const size_t rank = dual.shape.size();
  SymbolicShape square = dual.shape;
  square.push_back(dual.shape[axis]);
  const ValueId line = e.Counting(dual.shape[axis]);
  const auto index = [&](int64_t dimension) { return e.Broadcast(line, square, {dimension}); };
  const ValueId is_own =
      e.Compare(CompareDirection::kEq, index(static_cast<int64_t>(axis)), index(static_cast<int64_t>(rank)));
  const ValueId repeated = e.Broadcast(dual.x, square, AllAxes(rank));
  const ValueId masked = e.Select(is_own, e.Full(1, {.dtype = dtype, .shape = square}), repeated);
  const ValueId others = e.Reduce(ReduceKind::kProduct, masked, {static_cast<int64_t>(axis)});
  std::vector<int64_t> back = AllAxes(rank - 1);
  back.insert(back.begin() + static_cast<ptrdiff_t>(axis), static_cast<int64_t>(rank) - 1);
  const ValueId slopes = e.Transpose(others, std::move(back));
  dual.t = e.Reduce(ReduceKind::kSum, e.Mul(dual.t, slopes), {static_cast<int64_t>(axis)});
  dual.x = e.Reduce(ReduceKind::kProduct, dual.x, {static_cast<int64_t>(axis)});
  dual.shape.erase(dual.shape.begin() + static_cast<ptrdiff_t>(axis));
  return dual;
}

ValueId ProductTangent(JvpCall& call) {
  const TensorType operand = call.graph.type(call.operands[0]);
  std::vector<int64_t> axes = call.attrs.Ints("dimensions");
  std::sort(axes.rbegin(), axes.rend());
  DualTensor dual{.x = call.operands[0], .t = call.tangents[0], .shape = operand.shape};
  for (int64_t axis : axes) {
    dual = operand.is_static() ? ProductByHalves(call.graph, std::move(dual), static_cast<size_t>(axis))
                               : ProductByOthers(call.graph, std::move(dual), static_cast<size_t>(axis), operand.dtype);
  }
  return dual.t;
}

}  // namespace

void JvpReduce(JvpCall& call) {
  switch (static_cast<ReduceKind>(call.attrs.Int("kind"))) {
    case ReduceKind::kSum:
      return JvpLinear(call);
    case ReduceKind::kProduct:
      call.result_tangents[0] = ProductTangent(call);
      return;
    case ReduceKind::kMax:
    case ReduceKind::kMin: {
      const TensorType operand = call.graph.type(call.operands[0]);
      const SymbolicShape result = call.graph.type(call.results[0]).shape;
      call.result_tangents[0] =
          ExtremeTangent(call.graph, {.x = call.operands[0], .t = call.tangents[0], .shape = operand.shape},
                         operand.dtype, call.results[0], result, call.attrs.Ints("dimensions"));
      return;
    }
    case ReduceKind::kAnd:
    case ReduceKind::kOr:
    case ReduceKind::kUnspecified:
      return;  // of BOOL, which has no tangent
  }
}

// Of sums: the only linear kind.
void TransposeReduce(TransposeCall& call) {
  const SymbolicShape& shape = call.operand_types[0]->shape;
  call.operand_cotangents[0] =
      Terms(call.graph).Broadcast(call.cotangents[0], shape, KeptAxes(shape.size(), call.attrs.Ints("dimensions")));
}

}  // namespace tensord
