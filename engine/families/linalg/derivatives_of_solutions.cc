#include <optional>
#include <utility>

#include "engine/families/linalg/derivatives.h"
#include "engine/families/linalg/linalg_ops.h"
#include "engine/families/linalg/matrix_terms.h"
#include "engine/ir/derivative.h"

namespace tensord {
namespace {

// Sets the tangents of a sign and of the logarithm of a modulus; `trace` is the tangent of the logarithm of both.
void SetSignAndLogTangents(MatrixTerms& m, JvpCall& call, ValueId trace, size_t sign, size_t log) {
  const bool is_complex = kComplexes.Contains(call.graph.type(call.results[sign]).dtype);
  if (call.wanted[log]) call.result_tangents[log] = m.Real(trace);
  if (!call.wanted[sign] || !is_complex) return;
  const ValueId turn = m.e.Unary(CoreOp::kImag, trace);
  call.result_tangents[sign] = m.e.Mul(m.e.Binary(CoreOp::kComplex, m.e.Fill(0, turn), turn), call.results[sign]);
}

// Writes the tangent of the pseudo-inverse X of A for matrices that keep their rank,
// -X T X + X X^H T^H (1 - A X) + (1 - X A) T^H X^H X, by products that are no larger than A.
ValueId PseudoInverseTangent(MatrixTerms& m, ValueId a, ValueId x, ValueId t, bool is_wide) {
  Terms& e = m.e;
  const ValueId t_h = m.Adjoint(t), x_h = m.Adjoint(x);
  const ValueId inner = is_wide ? m.Dot(t, x) : m.Dot(x, t);
  const ValueId inner_h = m.Adjoint(inner);
  if (is_wide) {
    const ValueId within = e.Sub(e.Sub(inner_h, m.Dot(m.Dot(inner_h, a), x)), inner);
    const ValueId outside = e.Sub(t_h, m.Dot(x, m.Dot(a, t_h)));
    return e.Add(m.Dot(x, within), m.Dot(outside, m.Dot(x_h, x)));
  }
  const ValueId within = e.Sub(e.Sub(inner_h, m.Dot(x, m.Dot(a, inner_h))), inner);
  const ValueId outside = e.Sub(t_h, m.Dot(m.Dot(t_h, a), x));
  return e.Add(m.Dot(within, x), m.Dot(m.Dot(x, x_h), outside));
}

}  // namespace

void JvpTriangularSolve(JvpCall& call) {
  MatrixTerms m(call.graph);
  const ValueId x = call.results[0];
  ValueId right = call.tangents[1];
  if (call.has(0)) {
    const bool unit = call.attrs.Flag("unit_diagonal");
    ValueId a = call.attrs.Flag("lower") ? m.Triangle(CoreOp::kTril, call.tangents[0], unit ? -1 : 0)
                                         : m.Triangle(CoreOp::kTriu, call.tangents[0], unit ? 1 : 0);
    const TransposeA transpose = static_cast<TransposeA>(call.attrs.Int("transpose_a"));
    if (transpose != TransposeA::kNoTranspose) a = m.Turned(a);
    if (transpose == TransposeA::kAdjoint) a = m.e.Conj(a);
    const ValueId moved = call.attrs.Flag("left_side") ? m.Dot(a, x) : m.Dot(x, a);
    right = right.is_set() ? m.e.Sub(right, moved) : m.e.Neg(moved);
  }
  call.result_tangents[0] = call.graph.Add(call.op, call.attrs, {call.operands[0], right});
}

void TransposeTriangularSolve(TransposeCall& call) {
  MatrixTerms m(call.graph);
  const TransposeA transpose = static_cast<TransposeA>(call.attrs.Int("transpose_a"));
  // The adjoint of the transpose is the conjugate.
  const ValueId a = transpose == TransposeA::kTranspose ? m.e.Conj(call.operands[0]) : call.operands[0];
  const TransposeA back = transpose == TransposeA::kNoTranspose ? TransposeA::kAdjoint : TransposeA::kNoTranspose;
  call.operand_cotangents[1] = m.TriangularSolve(a, call.cotangents[0], call.attrs.Flag("left_side"),
                                                 call.attrs.Flag("lower"), call.attrs.Flag("unit_diagonal"), back);
}

void JvpSolve(JvpCall& call) {
  MatrixTerms m(call.graph);
  ValueId right = call.tangents[1];
  if (call.has(0)) {
    const ValueId moved = m.Dot(call.tangents[0], call.results[0]);
    right = right.is_set() ? m.e.Sub(right, moved) : m.e.Neg(moved);
  }
  call.result_tangents[0] = m.Solve(call.operands[0], right);
}

void TransposeSolve(TransposeCall& call) {
  MatrixTerms m(call.graph);
  call.operand_cotangents[1] = m.Solve(m.Adjoint(call.operands[0]), call.cotangents[0]);
}

void JvpInverse(JvpCall& call) {
  MatrixTerms m(call.graph);
  const ValueId inverse = call.results[0];
  call.result_tangents[0] = m.e.Neg(m.Dot(inverse, m.Dot(call.tangents[0], inverse)));
}

void JvpDeterminant(JvpCall& call) {
  MatrixTerms m(call.graph);
  call.result_tangents[0] = m.e.Mul(m.Trace(m.Solve(call.operands[0], call.tangents[0])), call.results[0]);
}

void JvpSignLogDeterminant(JvpCall& call) {
  MatrixTerms m(call.graph);
  SetSignAndLogTangents(m, call, m.Trace(m.Solve(call.operands[0], call.tangents[0])), 0, 1);
}

void JvpTriangularDeterminant(JvpCall& call) {
  if (!call.has(0)) return;  // the exponents are integers
  MatrixTerms m(call.graph);
  const ValueId ratios = m.e.Div(m.Diagonal(call.tangents[0]), m.Diagonal(call.operands[0]));
  const ValueId trace = m.e.Reduce(ReduceKind::kSum, ratios, {0});
  if (call.wanted[0]) call.result_tangents[0] = m.e.Mul(trace, call.results[0]);
  SetSignAndLogTangents(m, call, trace, 1, 2);
}

void JvpPseudoInverse(JvpCall& call) {
  MatrixTerms m(call.graph);
  const TensorType a = call.graph.type(call.operands[0]);
  const bool is_wide = !(a.shape[0] == a.shape[1]) && IsAtMost(a.shape[0], a.shape[1]);
  call.result_tangents[0] = PseudoInverseTangent(m, call.operands[0], call.results[0], call.tangents[0], is_wide);
}

// X = A^+ B: the tangent of the pseudo-inverse, applied to B from the right to the left.
void JvpLeastSquares(JvpCall& call) {
  MatrixTerms m(call.graph);
  Terms& e = m.e;
  const ValueId a = call.operands[0], b = call.operands[1], x = call.results[0], t = call.tangents[0];
  const OpDef& op = Def(LinalgOp::kPseudoInverse);
  Attributes attrs(op.attrs);
  attrs.Set("relative_cutoff", call.attrs.MaybeReal("relative_cutoff"));
  const ValueId inverse = call.graph.Add(op, std::move(attrs), {a});
  ValueId moved = call.tangents[1], outside;
  if (call.has(0)) {
    const ValueId inverse_h = m.Adjoint(inverse), t_h = m.Adjoint(t);
    const ValueId residual = e.Sub(b, m.Dot(a, x));
    outside = m.Dot(t_h, m.Dot(inverse_h, x));
    const ValueId pulled = e.Sub(m.Dot(inverse_h, m.Dot(t_h, residual)), m.Dot(t, x));
    moved = e.Sum(moved, e.Sub(pulled, m.Dot(a, outside)));
  }
  call.result_tangents[0] = e.Sum(m.Dot(inverse, moved), outside);
}

}  // namespace tensord
