#include "engine/base/refusal.h"
#include "engine/families/linalg/derivatives.h"
#include "engine/families/linalg/matrix_terms.h"
#include "engine/ir/derivative.h"

namespace tensord {

// Q^H dA R^-1 is W + dR R^-1, W = Q^H dQ anti-Hermitian and dR R^-1 upper triangular with a real diagonal. Columns of a
// wide A past R's square part move R alone.
void JvpQr(JvpCall& call) {
  MatrixTerms m(call.graph);
  const TensorType a = call.graph.type(call.operands[0]);
  const Dim &rows = a.shape[0], &columns = a.shape[1];
  if (call.attrs.Flag("full") && !IsAtMost(rows, columns)) {
    return call.graph.Fail(Refuse(Refusal::kUnsupportedRequest,
                                  "the columns that complete a full Q are not determined by A; ask for the thin one"));
  }
  const ValueId t = call.tangents[0], q = call.results[0], r = call.results[1];
  const TensorType of_q = call.graph.type(q), of_r = call.graph.type(r);
  const Dim& k = of_q.shape[1];
  const ValueId square = m.Block(r, of_r, k, k);
  const ValueId scaled =
      m.TriangularSolve(square, m.Block(t, a, rows, k), false, false, false, TransposeA::kNoTranspose);
  const ValueId inner = m.Dot(m.Adjoint(q), scaled);
  const ValueId turn = m.AntiHermitian(inner);
  const ValueId growth = m.e.Sub(inner, turn);
  if (call.wanted[0]) {
    // A square Q leaves nothing outside of its columns.
    call.result_tangents[0] = IsAtMost(rows, columns) ? m.Dot(q, turn) : m.e.Sub(scaled, m.Dot(q, growth));
  }
  if (!call.wanted[1]) return;
  const ValueId change = IsAtMost(columns, rows) ? m.Dot(growth, r) : m.e.Sub(m.Dot(m.Adjoint(q), t), m.Dot(turn, r));
  call.result_tangents[1] = m.Triangle(CoreOp::kTriu, change, 0);
}

// L^-1 P dA U^-1 is L^-1 dL, strictly lower, and dU U^-1, upper triangular. Rows of a tall A past the square part move
// L alone, and columns of a wide one U alone. P and the parity are constant.
void JvpLu(JvpCall& call) {
  MatrixTerms m(call.graph);
  const TensorType a = call.graph.type(call.operands[0]);
  const Dim &rows = a.shape[0], &columns = a.shape[1];
  const ValueId l = call.results[1], u = call.results[2];
  if (!call.wanted[1] && !call.wanted[2]) return;
  const TensorType of_l = call.graph.type(l), of_u = call.graph.type(u);
  const Dim& k = of_l.shape[1];
  const ValueId upper = m.Block(u, of_u, k, k), lower = m.Block(l, of_l, k, k);
  const ValueId t = m.Dot(call.results[0], call.tangents[0]);
  const ValueId right = m.TriangularSolve(upper, m.Block(t, a, rows, k), false, false, false, TransposeA::kNoTranspose);
  const TensorType& tall = of_l;
  const ValueId inner =
      m.TriangularSolve(lower, m.Block(right, tall, k, k), true, true, true, TransposeA::kNoTranspose);
  const ValueId of_lower = m.Triangle(CoreOp::kTril, inner, -1), of_upper = m.Triangle(CoreOp::kTriu, inner, 0);
  if (call.wanted[1]) {
    call.result_tangents[1] = IsAtMost(rows, columns)
                                  ? m.Dot(l, of_lower)
                                  : m.Triangle(CoreOp::kTril, m.e.Sub(right, m.Dot(l, of_upper)), -1);
  }
  if (!call.wanted[2]) return;
  if (IsAtMost(columns, rows)) {
    call.result_tangents[2] = m.Dot(of_upper, u);
    return;
  }
  const ValueId left = m.TriangularSolve(lower, m.Block(t, a, k, columns), true, true, true, TransposeA::kNoTranspose);
  call.result_tangents[2] = m.Triangle(CoreOp::kTriu, m.e.Sub(left, m.Dot(of_lower, u)), 0);
}

}  // namespace tensord
