#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_DERIVATIVE_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_DERIVATIVE_H_

#include "engine/ir/op_def.h"

namespace tensord {

// Sums the einsums with one operand's tangent in its place. Three and more operands are contracted by pairs along the
// einsum's path, each pair with its tangent, so that the nodes are a multiple of the operands. Refused in another
// algebra than the standard one, and for three and more operands if only a run tells whether an axis of an ellipsis
// repeats.
void JvpEinsum(JvpCall& call);
// Contracts the cotangent with the conjugates of all other operands. Axes that the operand alone had, and summed,
// repeat; off the diagonal of a repeated label the cotangent is 0. Refused if only a run tells whether an axis of an
// ellipsis repeats.
void TransposeEinsum(TransposeCall& call);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_DERIVATIVE_H_
