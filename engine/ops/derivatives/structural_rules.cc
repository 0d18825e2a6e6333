#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ops/derivatives/rules.h"
#include "engine/ops/derivatives/terms.h"

namespace tensord {

void JvpLinear(JvpCall& call) {
  if (!call.has(0)) return;
  DerivativeBuilder::Values operands(call.operands.begin(), call.operands.end());
  operands[0] = call.tangents[0];
  call.result_tangents[0] = call.graph.Add(call.op, call.attrs, operands);
}

void JvpProduct(JvpCall& call) {
  ValueId sum;
  for (size_t i = 0; i < 2; ++i) {
    if (!call.has(i)) continue;
    DerivativeBuilder::Values operands(call.operands.begin(), call.operands.end());
    operands[i] = call.tangents[i];
    sum = Terms(call.graph).Sum(sum, call.graph.Add(call.op, call.attrs, operands));
  }
  call.result_tangents[0] = sum;
}

void TransposeTranspose(TransposeCall& call) {
  const std::vector<int64_t>& permutation = call.attrs.Ints("permutation");
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  }
  call.operand_cotangents[0] = Terms(call.graph).Transpose(call.cotangents[0], std::move(inverse));
}

void TransposeReshape(TransposeCall& call) {
  call.operand_cotangents[0] =
      Terms(call.graph)
          .Reshape(call.cotangents[0], call.operand_types[0]->shape, static_cast<Order>(call.attrs.Int("order")));
}

namespace {

// Returns the cotangent of an axis of size `from`, which is 1 or `to` as the run decides, for the `axis` of ct of size
// `to`: the sum over it, or ct itself.
ValueId SumIfRepeated(Terms& e, ValueId ct, SymbolicShape shape, size_t axis, const Dim& from) {
  const ValueId is_kept = e.Compare(CompareDirection::kEq, e.SizeOf(from.size), e.SizeOf(shape[axis].size));
  const ValueId sum = e.Reduce(ReduceKind::kSum, ct, {static_cast<int64_t>(axis)});
  std::vector<int64_t> others = AllAxes(shape.size());
  others.erase(others.begin() + static_cast<ptrdiff_t>(axis));
  const ValueId kept = e.Resized(ct, shape, axis, from);  // padded where 1 was repeated 0 times
  shape[axis] = from;
  return e.Select(is_kept, kept, e.Broadcast(sum, shape, std::move(others)));
}

}  // namespace

// Sums over the axes that were repeated.
void TransposeBroadcastInDim(TransposeCall& call) {
  Terms e(call.graph);
  const std::vector<int64_t>& dimensions = call.attrs.Ints("broadcast_dimensions");
  const TensorType operand = *call.operand_types[0];
  SymbolicShape shape = call.result_types[0]->shape;
  ValueId ct = call.cotangents[0];
  std::vector<bool> is_kept(shape.size());
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const size_t axis = static_cast<size_t>(dimensions[i]);
    const Dim& from = operand.shape[i];
    is_kept[axis] = !from.size.is(1) || shape[axis].size.is(1);
    if (!is_kept[axis] || from == shape[axis] || from.size.is_constant()) continue;
    ct = SumIfRepeated(e, ct, shape, axis, from);
    shape[axis] = from;
  }
  std::vector<int64_t> summed, places(shape.size(), -1);
  int64_t kept = 0;
  for (size_t axis = 0; axis < is_kept.size(); ++axis) {
    if (is_kept[axis]) {
      places[axis] = kept++;
    } else {
      summed.push_back(static_cast<int64_t>(axis));
    }
  }
  if (!summed.empty()) ct = e.Reduce(ReduceKind::kSum, ct, std::move(summed));
  std::vector<int64_t> permutation;
  for (int64_t axis : dimensions) {
    if (is_kept[static_cast<size_t>(axis)]) permutation.push_back(places[static_cast<size_t>(axis)]);
  }
  ct = e.Transpose(ct, std::move(permutation));
  call.operand_cotangents[0] = e.Reshape(ct, operand.shape);
}

// The cotangent is behind a barrier likewise. Others with tangents, which have no values here, are left out.
void TransposeOptimizationBarrier(TransposeCall& call) {
  DerivativeBuilder::Values operands = {call.cotangents[0]};
  for (size_t k = 1; k < call.operands.size(); ++k) {
    if (!call.is_linear(k)) operands.push_back(call.operands[k]);
  }
  call.operand_cotangents[0] = call.graph.Add(call.op, operands);
}

void TransposeExtractDiag(TransposeCall& call) {
  const int64_t a = call.attrs.Int("axis_a"), b = call.attrs.Int("axis_b");
  Attributes attrs(Def(CoreOp::kEmbedDiag).attrs);
  attrs.Set("axis_a", a - (b < a ? 1 : 0));
  attrs.Set("axis_b", b);
  call.operand_cotangents[0] = call.graph.Add(Def(CoreOp::kEmbedDiag), std::move(attrs), {call.cotangents[0]});
}

void TransposeEmbedDiag(TransposeCall& call) {
  const int64_t a = call.attrs.Int("axis_a"), b = call.attrs.Int("axis_b");
  Attributes attrs(Def(CoreOp::kExtractDiag).attrs);
  attrs.Set("axis_a", a + (b <= a ? 1 : 0));
  attrs.Set("axis_b", b);
  call.operand_cotangents[0] = call.graph.Add(Def(CoreOp::kExtractDiag), std::move(attrs), {call.cotangents[0]});
}

void TransposeTriangle(TransposeCall& call) {
  call.operand_cotangents[0] = call.graph.Add(call.op, call.attrs, {call.cotangents[0]});
}

}  // namespace tensord
