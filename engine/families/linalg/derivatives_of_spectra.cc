#include <limits>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/families/linalg/derivatives.h"
#include "engine/families/linalg/linalg_ops.h"
#include "engine/families/linalg/matrix_terms.h"
#include "engine/families/linalg/matrix_types.h"
#include "engine/ir/derivative.h"

namespace tensord {
namespace {

// Returns the diagonal of U^H dA V: the tangents of values that belong to vectors.
ValueId ValueTangents(MatrixTerms& m, ValueId left, ValueId tangent, ValueId right) {
  return m.Real(m.Diagonal(m.Dot(m.Adjoint(left), m.Dot(tangent, right))));
}

// Real values of a batch of matrices, ordered by size, and what is no more than rounding beside the largest of each.
class Spectrum {
 public:
  // `square` is the type of the matrices with a row and a column for each value.
  Spectrum(MatrixTerms& m, ValueId values, const TensorType& square)
      : e_(m.e), values_(values), square_(square), batch_(AllAxes(square.shape.size())) {
    batch_.erase(batch_.begin(), batch_.begin() + 2);
    const double eps = RealPartOf(square.dtype) == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                                               : std::numeric_limits<float>::epsilon();
    const ValueId largest = e_.Reduce(ReduceKind::kMax, e_.Unary(CoreOp::kAbs, values), {0});
    rounding_ = e_.Mul(largest, e_.Fill(64 * eps, largest));
  }

  // Returns 1 / (w_j - w_i), and 0 where the two differ by no more than rounding, in the dtype of the matrices.
  ValueId InverseGaps() { return Inverse(e_.Sub(Along(1, square_), Along(0, square_)), square_); }
  // Returns 1 / (w_j + w_i), or 0.
  ValueId InverseSums() { return Inverse(e_.Add(Along(1, square_), Along(0, square_)), square_); }
  // Returns 1 / w along an axis of matrices of the type, or 0.
  ValueId Inverses(int64_t axis, const TensorType& type) { return Inverse(Along(axis, type), type); }

 private:
  ValueId Along(int64_t axis, const TensorType& type) {
    std::vector<int64_t> dimensions = batch_;
    dimensions.insert(dimensions.begin(), axis);
    return e_.Broadcast(values_, type.shape, std::move(dimensions));
  }
  ValueId Inverse(ValueId x, const TensorType& type) {
    const ValueId bound = e_.Broadcast(rounding_, type.shape, batch_);
    const ValueId is_small = e_.Compare(CompareDirection::kLe, e_.Unary(CoreOp::kAbs, x), bound);
    const ValueId one = e_.Fill(1, x);
    return e_.Convert(e_.Select(is_small, e_.Fill(0, x), e_.Div(one, e_.Select(is_small, one, x))), type.dtype);
  }

  Terms& e_;
  const ValueId values_;
  const TensorType square_;
  std::vector<int64_t> batch_;
  ValueId rounding_;
};

// The tangents of a thin singular value decomposition. U^H dU and V^H dV are E o H + G o K and E o H - G o K: H and K
// are the Hermitian and the anti-Hermitian part of U^H dA V, E has 1 / (s_j - s_i), and G 1 / (s_j + s_i). What is left
// of the diagonal of a complex A turns U alone.
class SingularTangents {
 public:
  SingularTangents(JvpCall& call, const DerivativeBuilder::Values& parts)
      : m_(call.graph),
        type_(call.graph.type(call.operands[0])),
        u_(parts[0]),
        vh_(parts[2]),
        t_(call.tangents[0]),
        right_(m_.Dot(t_, m_.Adjoint(vh_))),
        inner_(m_.Dot(m_.Adjoint(u_), right_)),
        values_(parts[1]) {}

  ValueId OfValues() { return m_.Real(m_.Diagonal(inner_)); }

  // Writes the tangents of U and of Vh, of which `k` is the number of vectors.
  void OfVectors(const Dim& k, bool wants_u, bool wants_vh, ValueId* of_u, ValueId* of_vh) {
    Terms& e = m_.e;
    const ValueId inner_h = m_.Adjoint(inner_);
    Spectrum spectrum(m_, values_, MatricesLike(type_, type_.dtype, k, k));
    ValueId turn = e.Mul(m_.Half(e.Add(inner_, inner_h)), spectrum.InverseGaps());
    const ValueId shear = e.Mul(m_.Half(e.Sub(inner_, inner_h)), spectrum.InverseSums());
    if (kComplexes.Contains(type_.dtype)) turn = e.Add(turn, m_.Embedded(m_.Diagonal(shear)));
    const Dim &rows = type_.shape[0], &columns = type_.shape[1];
    if (wants_u) {
      *of_u = m_.Dot(u_, e.Add(turn, shear));
      if (!IsAtMost(rows, columns)) {
        const ValueId outside = e.Sub(right_, m_.Dot(u_, inner_));
        *of_u = e.Add(*of_u, e.Mul(outside, spectrum.Inverses(1, MatricesLike(type_, type_.dtype, rows, k))));
      }
    }
    if (!wants_vh) return;
    *of_vh = m_.Dot(e.Sub(shear, turn), vh_);
    if (IsAtMost(columns, rows)) return;
    const ValueId outside = e.Sub(m_.Dot(m_.Adjoint(u_), t_), m_.Dot(inner_, vh_));
    *of_vh = e.Add(*of_vh, e.Mul(outside, spectrum.Inverses(0, MatricesLike(type_, type_.dtype, k, columns))));
  }

 private:
  MatrixTerms m_;
  const TensorType type_;
  const ValueId u_, vh_, t_;
  const ValueId right_;  // dA V
  const ValueId inner_;  // U^H dA V
  const ValueId values_;
};

DerivativeBuilder::Values ThinSvd(JvpCall& call) {
  const OpDef& svd = Def(LinalgOp::kSvd);
  return call.graph.AddAll(svd, Attributes(svd.attrs), {call.operands[0]});
}

// Returns V^-1 dA V's diagonal.
ValueId EigenvalueTangents(JvpCall& call, ValueId vectors) {
  MatrixTerms m(call.graph);
  const ValueId t = m.e.Convert(call.tangents[0], call.graph.type(vectors).dtype);
  return m.Diagonal(m.Solve(vectors, m.Dot(t, vectors)));
}

}  // namespace

void JvpEigh(JvpCall& call) {
  MatrixTerms m(call.graph);
  const ValueId values = call.results[0], vectors = call.results[1];
  const TensorType matrices = call.graph.type(vectors);
  const ValueId inner = m.Dot(m.Adjoint(vectors), m.Dot(m.Hermitian(call.tangents[0]), vectors));
  if (call.wanted[0]) call.result_tangents[0] = m.Real(m.Diagonal(inner));
  if (!call.wanted[1]) return;
  call.result_tangents[1] = m.Dot(vectors, m.e.Mul(inner, Spectrum(m, values, matrices).InverseGaps()));
}

void JvpEighValues(JvpCall& call) {
  MatrixTerms m(call.graph);
  const OpDef& eigh = Def(LinalgOp::kEigh);
  const ValueId vectors = call.graph.AddAll(eigh, Attributes(eigh.attrs), {call.operands[0]})[1];
  call.result_tangents[0] = ValueTangents(m, vectors, m.Hermitian(call.tangents[0]), vectors);
}

void JvpSvdValues(JvpCall& call) { call.result_tangents[0] = SingularTangents(call, ThinSvd(call)).OfValues(); }

void JvpSvd(JvpCall& call) {
  const TensorType type = call.graph.type(call.operands[0]);
  const bool is_thin = !call.attrs.Flag("full") || type.shape[0] == type.shape[1];
  const bool wants_vectors = call.wanted[0] || call.wanted[2];
  if (wants_vectors && !is_thin) {
    return call.graph.Fail(
        Refuse(Refusal::kUnsupportedRequest,
               "the vectors that complete a full U or Vh are not determined by A; ask for the thin ones"));
  }
  const DerivativeBuilder::Values results(call.results.begin(), call.results.end());
  SingularTangents tangents(call, is_thin ? results : ThinSvd(call));
  if (call.wanted[1]) call.result_tangents[1] = tangents.OfValues();
  if (!wants_vectors) return;
  const Dim k = call.graph.type(results[1]).shape[0];
  tangents.OfVectors(k, call.wanted[0], call.wanted[2], &call.result_tangents[0], &call.result_tangents[2]);
}

void JvpEig(JvpCall& call) {
  if (call.wanted[1]) {
    return call.graph.Fail(
        Refuse(Refusal::kUnsupportedRequest, "eigenvectors of a general matrix have no rule, only its eigenvalues"));
  }
  call.result_tangents[0] = EigenvalueTangents(call, call.results[1]);
}

void JvpEigValues(JvpCall& call) {
  const OpDef& eig = Def(LinalgOp::kEig);
  const ValueId vectors = call.graph.AddAll(eig, Attributes(eig.attrs), {call.operands[0]})[1];
  call.result_tangents[0] = EigenvalueTangents(call, vectors);
}

}  // namespace tensord
