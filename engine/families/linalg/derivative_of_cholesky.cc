#include <algorithm>
#include <cstdint>

#include "engine/base/rounding.h"
#include "engine/families/linalg/derivatives.h"
#include "engine/families/linalg/matrix_terms.h"
#include "engine/families/linalg/matrix_types.h"
#include "engine/ir/derivative.h"

namespace tensord {
namespace {

// Rows up to which a block is not split, and the most blocks on a diagonal. Blocks of larger matrices are larger, so
// that a node adds some hundreds of nodes at most.
constexpr int64_t kLeastBlock = 64;
constexpr int64_t kMostBlocks = 8;

// Writes the tangent of L, A = L L^H, by the recursion of Murray, "Differentiation of the Cholesky decomposition"
// (2016): a fifth of the operations of the formula for whole matrices. Reads the tangent of A as the factorization
// reads A: the lower triangle, and the real part of the diagonal.
class CholeskyTangent {
 public:
  CholeskyTangent(DerivativeBuilder& graph, ValueId l, int64_t n)
      : m_(graph), l_(l), type_(graph.type(l)), block_(BlockOf(n)) {}

  // Returns the tangent of a diagonal block of L, lower triangular. `t` is that of the block of A, without what the
  // rows before it contribute.
  ValueId Of(ValueId t, int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    if (n <= block_) return Unsplit(m_, m_.Window(l_, type_, {begin, end}, {begin, end}), t);
    const int64_t split = RoundUp(n / 2, block_);
    const TensorType whole = MatricesLike(type_, type_.dtype, Dim(n), Dim(n));
    const ValueId t11 = m_.Window(t, whole, {0, split}, {0, split}), t21 = m_.Window(t, whole, {split, n}, {0, split}),
                  t22 = m_.Window(t, whole, {split, n}, {split, n});
    const ValueId first = Of(t11, begin, begin + split);
    const ValueId l11 = m_.Window(l_, type_, {begin, begin + split}, {begin, begin + split}),
                  l21 = m_.Window(l_, type_, {begin + split, end}, {begin, begin + split});
    const ValueId below = m_.TriangularSolve(l11, m_.e.Sub(t21, m_.Dot(l21, m_.Adjoint(first))), false, true, false,
                                             TransposeA::kAdjoint);
    const ValueId taken = m_.Dot(below, m_.Adjoint(l21));
    const ValueId last = Of(m_.e.Sub(t22, m_.e.Add(taken, m_.Adjoint(taken))), begin + split, end);
    const ValueId zeros = m_.e.Zeros(MatricesLike(type_, type_.dtype, Dim(split), Dim(n - split)));
    return m_.Joined(1, m_.Joined(0, first, below), m_.Joined(0, zeros, last));
  }

  // Returns L times the lower half of L^-1 dA L^-H.
  static ValueId Unsplit(MatrixTerms& m, ValueId l, ValueId t) {
    const ValueId left = m.TriangularSolve(l, m.Hermitian(t), true, true, false, TransposeA::kNoTranspose);
    const ValueId both = m.TriangularSolve(l, left, false, true, false, TransposeA::kAdjoint);
    return m.Dot(l, m.LowerHalf(both));
  }

 private:
  static int64_t BlockOf(int64_t n) {
    return std::max(kLeastBlock, RoundUp((n + kMostBlocks - 1) / kMostBlocks, kLeastBlock));
  }

  MatrixTerms m_;
  const ValueId l_;
  const TensorType type_;
  const int64_t block_;
};

}  // namespace

void JvpCholesky(JvpCall& call) {
  const ValueId l = call.results[0];
  const TensorType type = call.graph.type(l);
  if (!type.is_static()) {
    MatrixTerms m(call.graph);
    call.result_tangents[0] = CholeskyTangent::Unsplit(m, l, call.tangents[0]);
    return;
  }
  const int64_t n = type.shape[0].size.constant();
  call.result_tangents[0] = CholeskyTangent(call.graph, l, n).Of(call.tangents[0], 0, n);
}

}  // namespace tensord
