#ifndef TENSORD_ENGINE_FAMILIES_FFT_FFT_DERIVATIVE_H_
#define TENSORD_ENGINE_FAMILIES_FFT_FFT_DERIVATIVE_H_

#include "engine/ir/op_def.h"

namespace tensord {

// Transforms the tangent: all kinds are linear.
void JvpFft(JvpCall& call);
// Applies the adjoint of each step, the last first: the transform the other way round, with the factor of the same
// norm, in the size that the step read.
void TransposeFft(TransposeCall& call);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_FFT_FFT_DERIVATIVE_H_
