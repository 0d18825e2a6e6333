#include "engine/families/linalg/derivatives.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/families/linalg/linalg_ops.h"
#include "engine/families/linalg/solutions.h"
#include "engine/ir/derivative.h"
#include "engine/ops/derivatives/terms.h"

namespace tensord {
namespace {

// Expressions of batches of matrices along the first two axes.
class MatrixTerms {
 public:
  explicit MatrixTerms(DerivativeBuilder& graph) : e(graph), graph_(graph) {}

  ValueId Dot(ValueId a, ValueId b) {
    std::vector<int64_t> batch = AllAxes(static_cast<size_t>(graph_.type(a).rank()));
    batch.erase(batch.begin(), batch.begin() + std::min<ptrdiff_t>(2, static_cast<ptrdiff_t>(batch.size())));
    Attributes attrs(Def(CoreOp::kDotGeneral).attrs);
    attrs.Set("lhs_contracting_dimensions", std::vector<int64_t>{1});
    attrs.Set("rhs_contracting_dimensions", std::vector<int64_t>{0});
    attrs.Set("lhs_batching_dimensions", batch);
    attrs.Set("rhs_batching_dimensions", batch);
    return graph_.Add(Def(CoreOp::kDotGeneral), std::move(attrs), {a, b});
  }
  ValueId Turned(ValueId a) {
    std::vector<int64_t> axes = AllAxes(static_cast<size_t>(graph_.type(a).rank()));
    if (axes.size() >= 2) std::swap(axes[0], axes[1]);
    return e.Transpose(a, std::move(axes));
  }
  ValueId Adjoint(ValueId a) { return e.Conj(Turned(a)); }
  ValueId Triangle(CoreOp op, ValueId a, int64_t diagonal) {
    Attributes attrs(Def(op).attrs);
    attrs.Set("diagonal", diagonal);
    return graph_.Add(Def(op), std::move(attrs), {a});
  }
  // Returns the lower triangle with half the diagonal.
  ValueId LowerHalf(ValueId a) {
    const ValueId sum = e.Add(Triangle(CoreOp::kTril, a, 0), Triangle(CoreOp::kTril, a, -1));
    return e.Mul(sum, e.Fill(0.5, sum));
  }
  // Returns the Hermitian matrix of which the lower triangle is read.
  ValueId Hermitian(ValueId a) {
    const ValueId half = LowerHalf(a);
    return e.Add(half, Adjoint(half));
  }
  ValueId Diagonal(ValueId a) {
    Attributes attrs(Def(CoreOp::kExtractDiag).attrs);
    attrs.Set("axis_a", int64_t{0});
    attrs.Set("axis_b", int64_t{1});
    return graph_.Add(Def(CoreOp::kExtractDiag), std::move(attrs), {a});
  }
  ValueId Trace(ValueId a) { return e.Reduce(ReduceKind::kSum, Diagonal(a), {0}); }
  ValueId Real(ValueId a) { return kComplexes.Contains(graph_.type(a).dtype) ? e.Unary(CoreOp::kReal, a) : a; }
  ValueId Solve(ValueId a, ValueId b) { return graph_.Add(Def(LinalgOp::kSolve), {a, b}); }
  ValueId TriangularSolve(ValueId a, ValueId b, bool left_side, bool lower, bool unit_diagonal, TransposeA transpose) {
    const OpDef& op = Def(LinalgOp::kTriangularSolve);
    Attributes attrs(op.attrs);
    attrs.Set("left_side", left_side);
    attrs.Set("lower", lower);
    attrs.Set("unit_diagonal", unit_diagonal);
    attrs.Set("transpose_a", static_cast<int64_t>(transpose));
    return graph_.Add(op, std::move(attrs), {a, b});
  }

  Terms e;

 private:
  DerivativeBuilder& graph_;
};

// Returns the diagonal of U^H dA V: the tangents of values that belong to vectors.
ValueId ValueTangents(MatrixTerms& m, ValueId left, ValueId tangent, ValueId right) {
  return m.Real(m.Diagonal(m.Dot(m.Adjoint(left), m.Dot(tangent, right))));
}

// Returns 1 / (w_j - w_i), and 0 where the two differ by no more than rounding, in the dtype of the matrices.
ValueId InverseGaps(MatrixTerms& m, ValueId values, const TensorType& matrices) {
  Terms& e = m.e;
  const DType real = RealPartOf(matrices.dtype);
  std::vector<int64_t> batch = AllAxes(matrices.shape.size());
  batch.erase(batch.begin(), batch.begin() + 2);
  const auto along = [&](int64_t axis) {
    std::vector<int64_t> dimensions = batch;
    dimensions.insert(dimensions.begin(), axis);
    return e.Broadcast(values, matrices.shape, std::move(dimensions));
  };
  const ValueId gap = e.Sub(along(1), along(0));
  const double eps =
      real == DType::kF64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const ValueId largest = e.Reduce(ReduceKind::kMax, e.Unary(CoreOp::kAbs, values), {0});
  const ValueId bound = e.Broadcast(e.Mul(largest, e.Fill(64 * eps, largest)), matrices.shape, batch);
  const ValueId is_close = e.Compare(CompareDirection::kLe, e.Unary(CoreOp::kAbs, gap), bound);
  const ValueId one = e.Fill(1, gap);
  return e.Convert(e.Select(is_close, e.Fill(0, gap), e.Div(one, e.Select(is_close, one, gap))), matrices.dtype);
}

ValueId SingularValueTangents(JvpCall& call) {
  MatrixTerms m(call.graph);
  const OpDef& svd = Def(LinalgOp::kSvd);
  const DerivativeBuilder::Values parts = call.graph.AddAll(svd, Attributes(svd.attrs), {call.operands[0]});
  return ValueTangents(m, parts[0], call.tangents[0], m.Adjoint(parts[2]));
}

}  // namespace

// L times the lower half of L^-1 dA L^-H.
void JvpCholesky(JvpCall& call) {
  MatrixTerms m(call.graph);
  const ValueId l = call.results[0];
  const ValueId left = m.TriangularSolve(l, m.Hermitian(call.tangents[0]), true, true, false, TransposeA::kNoTranspose);
  const ValueId both = m.TriangularSolve(l, left, false, true, false, TransposeA::kAdjoint);
  call.result_tangents[0] = m.Dot(l, m.LowerHalf(both));
}

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
  const ValueId trace = m.Trace(m.Solve(call.operands[0], call.tangents[0]));
  const bool is_complex = kComplexes.Contains(call.graph.type(call.results[0]).dtype);
  if (call.wanted[1]) call.result_tangents[1] = m.Real(trace);
  if (!call.wanted[0] || !is_complex) return;
  const ValueId turn = m.e.Unary(CoreOp::kImag, trace);
  call.result_tangents[0] = m.e.Mul(m.e.Binary(CoreOp::kComplex, m.e.Fill(0, turn), turn), call.results[0]);
}

void JvpEigh(JvpCall& call) {
  MatrixTerms m(call.graph);
  const ValueId values = call.results[0], vectors = call.results[1];
  const TensorType matrices = call.graph.type(vectors);
  const ValueId inner = m.Dot(m.Adjoint(vectors), m.Dot(m.Hermitian(call.tangents[0]), vectors));
  if (call.wanted[0]) call.result_tangents[0] = m.Real(m.Diagonal(inner));
  if (!call.wanted[1]) return;
  call.result_tangents[1] = m.Dot(vectors, m.e.Mul(inner, InverseGaps(m, values, matrices)));
}

void JvpEighValues(JvpCall& call) {
  MatrixTerms m(call.graph);
  const OpDef& eigh = Def(LinalgOp::kEigh);
  const ValueId vectors = call.graph.AddAll(eigh, Attributes(eigh.attrs), {call.operands[0]})[1];
  call.result_tangents[0] = ValueTangents(m, vectors, m.Hermitian(call.tangents[0]), vectors);
}

void JvpSvdValues(JvpCall& call) { call.result_tangents[0] = SingularValueTangents(call); }

void JvpSvd(JvpCall& call) {
  if (call.wanted[0] || call.wanted[2]) {
    return call.graph.Fail(Refuse(Refusal::kUnsupportedRequest,
                                  "there is no derivative of singular vectors yet, only of singular values"));
  }
  call.result_tangents[1] = SingularValueTangents(call);
}

}  // namespace tensord
