#ifndef TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_TERMS_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_TERMS_H_

#include <cstdint>
#include <utility>

#include "engine/families/linalg/solutions.h"
#include "engine/ir/derivative.h"
#include "engine/ops/derivatives/terms.h"

namespace tensord {

// Writes expressions of batches of matrices, along the first two axes, for rules of derivatives. As in Terms, values
// are unset after a failure, and types may only be asked of values that came to the rule. Borrows the builder.
class MatrixTerms {
 public:
  explicit MatrixTerms(DerivativeBuilder& graph) : e(graph), graph_(graph) {}

  ValueId Dot(ValueId a, ValueId b);
  ValueId Turned(ValueId a);
  ValueId Adjoint(ValueId a) { return e.Conj(Turned(a)); }
  ValueId Real(ValueId a);
  ValueId Half(ValueId a) { return e.Mul(a, e.Fill(0.5, a)); }

  // `op` is kTril or kTriu.
  ValueId Triangle(CoreOp op, ValueId a, int64_t diagonal);
  // Returns the lower triangle with half the diagonal.
  ValueId LowerHalf(ValueId a) { return Half(e.Add(Triangle(CoreOp::kTril, a, 0), Triangle(CoreOp::kTril, a, -1))); }
  // Returns the Hermitian matrix of which the lower triangle is read.
  ValueId Hermitian(ValueId a);
  // Returns the anti-Hermitian matrix of which the lower triangle is read, and the imaginary part of the diagonal.
  ValueId AntiHermitian(ValueId a);
  ValueId Diagonal(ValueId a);
  // Returns the diagonal matrices of vectors.
  ValueId Embedded(ValueId diagonal);
  ValueId Trace(ValueId a) { return e.Reduce(ReduceKind::kSum, Diagonal(a), {0}); }
  // Returns rows and columns of matrices of a static type, or `a` itself if they are all. Both ranges are half-open.
  ValueId Window(ValueId a, const TensorType& type, std::pair<int64_t, int64_t> rows,
                 std::pair<int64_t, int64_t> columns);
  // Returns matrices below each other (axis 0) or beside each other (axis 1).
  ValueId Joined(int64_t axis, ValueId first, ValueId second);
  // Returns the first rows and columns of matrices of a type.
  ValueId Block(ValueId a, const TensorType& type, const Dim& rows, const Dim& columns);

  ValueId Solve(ValueId a, ValueId b);
  ValueId TriangularSolve(ValueId a, ValueId b, bool left_side, bool lower, bool unit_diagonal, TransposeA transpose);

  Terms e;

 private:
  DerivativeBuilder& graph_;
};

// Tells whether a size is known not to be above another.
bool IsAtMost(const Dim& size, const Dim& most);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_TERMS_H_
