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

// Sums over the axes that were repeated.
void TransposeBroadcastInDim(TransposeCall& call) {
  Terms e(call.graph);
  const std::vector<int64_t>& dimensions = call.attrs.Ints("broadcast_dimensions");
  const TensorType &operand = *call.operand_types[0], &result = *call.result_types[0];
  std::vector<bool> is_kept(result.shape.size());
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const Dim &from = operand.shape[i], &to = result.shape[static_cast<size_t>(dimensions[i])];
    is_kept[static_cast<size_t>(dimensions[i])] = from == to;
    if (!(from == to) && !from.size.is(1)) {
      return call.graph.Fail(
          Refuse(Refusal::kUnsupportedRequest,
                 absl::StrCat("there is no derivative of a broadcast if only the run tells whether it repeats an axis: "
                              "operand axis ",
                              i, " is ", ToString(from), ", and its result axis ", ToString(to))));
    }
  }
  std::vector<int64_t> summed, places(result.shape.size(), -1);
  int64_t kept = 0;
  for (size_t axis = 0; axis < is_kept.size(); ++axis) {
    if (is_kept[axis]) {
      places[axis] = kept++;
    } else {
      summed.push_back(static_cast<int64_t>(axis));
    }
  }
  ValueId ct = call.cotangents[0];
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
