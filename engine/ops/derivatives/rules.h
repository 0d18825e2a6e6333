#ifndef TENSORD_ENGINE_OPS_DERIVATIVES_RULES_H_
#define TENSORD_ENGINE_OPS_DERIVATIVES_RULES_H_

#include "absl/strings/string_view.h"
#include "engine/ir/op_def.h"

namespace tensord {

// Rules of derivatives of the core ops that are no functors, in files of the same names as the ops' own.

// Applies the op to the first operand's tangent; all other operands stay.
void JvpLinear(JvpCall& call);
// Sums the op of a tangent and the other operand, for each of two operands.
void JvpProduct(JvpCall& call);

void TransposeTranspose(TransposeCall& call);
void TransposeReshape(TransposeCall& call);
void TransposeBroadcastInDim(TransposeCall& call);
void TransposeOptimizationBarrier(TransposeCall& call);
void TransposeSlice(TransposeCall& call);
void JvpPad(JvpCall& call);
void TransposePad(TransposeCall& call);
void JvpConcatenate(JvpCall& call);
void TransposeConcatenate(TransposeCall& call);
void TransposeReverse(TransposeCall& call);
void TransposeExtractDiag(TransposeCall& call);
void TransposeEmbedDiag(TransposeCall& call);
void TransposeTriangle(TransposeCall& call);
void JvpDotGeneral(JvpCall& call);
void TransposeDotGeneral(TransposeCall& call);
void JvpReduce(JvpCall& call);
void TransposeReduce(TransposeCall& call);
void JvpSelect(JvpCall& call);
void TransposeSelect(TransposeCall& call);
void JvpClamp(JvpCall& call);
void TransposeConvert(TransposeCall& call);
void TransposeGather(TransposeCall& call);
void JvpScatter(JvpCall& call);
void TransposeScatter(TransposeCall& call);
void TransposeDynamicSlice(TransposeCall& call);
void JvpDynamicUpdateSlice(JvpCall& call);
void TransposeDynamicUpdateSlice(TransposeCall& call);
void TransposeDynamicTruncate(TransposeCall& call);
void TransposePadToMatch(TransposeCall& call);

inline constexpr absl::string_view kNothingToDifferentiate = "it has no operand";
inline constexpr absl::string_view kNothingFlows = "no derivative flows through integers and booleans";
inline constexpr absl::string_view kNotLinear = "it is not linear, and no rule writes it of tangents";

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_DERIVATIVES_RULES_H_
