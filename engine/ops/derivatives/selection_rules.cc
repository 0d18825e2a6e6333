#include "engine/ops/derivatives/rules.h"
#include "engine/ops/derivatives/terms.h"

namespace tensord {

void JvpSelect(JvpCall& call) {
  Terms e(call.graph);
  const TensorType type = call.graph.type(call.results[0]);
  const ValueId on_true = e.OrZeros(call.tangents[1], type), on_false = e.OrZeros(call.tangents[2], type);
  call.result_tangents[0] = e.Select(call.operands[0], on_true, on_false);
}

void TransposeSelect(TransposeCall& call) {
  Terms e(call.graph);
  const ValueId predicate = call.operands[0], ct = call.cotangents[0];
  if (call.is_linear(1)) call.operand_cotangents[1] = e.Select(predicate, ct, e.Fill(0, ct));
  if (call.is_linear(2)) call.operand_cotangents[2] = e.Select(predicate, e.Fill(0, ct), ct);
}

// The operand takes the tangent strictly between the bounds, a bound where the operand is strictly beyond it; the upper
// one everywhere if the bounds cross. At a bound nobody takes it.
void JvpClamp(JvpCall& call) {
  Terms e(call.graph);
  const TensorType type = call.graph.type(call.operands[1]);
  const auto whole = [&](ValueId x) {
    return !x.is_set() || call.graph.type(x).rank() == type.rank() ? x : e.Broadcast(x, type.shape, {});
  };
  const ValueId low = whole(call.operands[0]), x = call.operands[1], high = whole(call.operands[2]);
  const ValueId zero = e.Zeros(type), ordered = e.Compare(CompareDirection::kLt, low, high);
  ValueId sum;
  const auto take = [&](ValueId where, ValueId tangent) { sum = e.Sum(sum, e.Select(where, whole(tangent), zero)); };
  if (call.has(0)) take(e.Binary(CoreOp::kAnd, ordered, e.Compare(CompareDirection::kLt, x, low)), call.tangents[0]);
  if (call.has(1)) {
    take(e.Binary(CoreOp::kAnd, e.Compare(CompareDirection::kLt, low, x), e.Compare(CompareDirection::kLt, x, high)),
         call.tangents[1]);
  }
  if (call.has(2)) {
    const ValueId beyond = e.Binary(CoreOp::kAnd, ordered, e.Compare(CompareDirection::kGt, x, high));
    take(e.Binary(CoreOp::kOr, beyond, e.Compare(CompareDirection::kGt, low, high)), call.tangents[2]);
  }
  call.result_tangents[0] = sum;
}

void TransposeConvert(TransposeCall& call) {
  call.operand_cotangents[0] = Terms(call.graph).Convert(call.cotangents[0], call.operand_types[0]->dtype);
}

}  // namespace tensord
