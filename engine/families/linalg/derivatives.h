#ifndef TENSORD_ENGINE_FAMILIES_LINALG_DERIVATIVES_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_DERIVATIVES_H_

#include "engine/ir/op_def.h"

namespace tensord {

// Rules of derivatives of the family.
//
// Cholesky, Eigh and EighValues read the lower triangle and the real part of the diagonal, and so have no derivative by
// the rest. Equal eigenvalues and singular values keep derivatives finite: vectors of values that differ by no more
// than rounding do not turn into each other. Vectors are differentiated up to their phases.

void JvpCholesky(JvpCall& call);
// P and the parity are constant.
void JvpLu(JvpCall& call);
// Refuses a full Q and its R unless A is known to have no more rows than columns.
void JvpQr(JvpCall& call);

void JvpTriangularSolve(JvpCall& call);
void TransposeTriangularSolve(TransposeCall& call);
void JvpSolve(JvpCall& call);
void TransposeSolve(TransposeCall& call);
void JvpInverse(JvpCall& call);
void JvpDeterminant(JvpCall& call);
void JvpSignLogDeterminant(JvpCall& call);
void JvpTriangularDeterminant(JvpCall& call);
// Takes matrices to keep their rank.
void JvpPseudoInverse(JvpCall& call);
void JvpLeastSquares(JvpCall& call);

void JvpEigh(JvpCall& call);
void JvpEighValues(JvpCall& call);
// Refuses vectors of a full decomposition unless A is known to be square.
void JvpSvd(JvpCall& call);
void JvpSvdValues(JvpCall& call);
// Refuses vectors.
void JvpEig(JvpCall& call);
void JvpEigValues(JvpCall& call);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_DERIVATIVES_H_
