#ifndef TENSORD_ENGINE_FAMILIES_LINALG_DERIVATIVES_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_DERIVATIVES_H_

#include "engine/ir/op_def.h"

namespace tensord {

// Rules of derivatives of the family. Cholesky, Eigh and EighValues read the lower triangle and the real part of the
// diagonal, and so have no derivative by the rest. Equal eigenvalues keep derivatives finite: vectors of values that
// differ by no more than rounding do not turn into each other.
void JvpCholesky(JvpCall& call);
void JvpTriangularSolve(JvpCall& call);
void TransposeTriangularSolve(TransposeCall& call);
void JvpSolve(JvpCall& call);
void TransposeSolve(TransposeCall& call);
void JvpInverse(JvpCall& call);
void JvpDeterminant(JvpCall& call);
void JvpSignLogDeterminant(JvpCall& call);
void JvpEigh(JvpCall& call);
void JvpEighValues(JvpCall& call);
void JvpSvdValues(JvpCall& call);
// Refuses vectors.
void JvpSvd(JvpCall& call);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_DERIVATIVES_H_
