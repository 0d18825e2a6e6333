// Householder's QR of matrices that lie across lanes, with the signs of LAPACK's geqr2.
#if defined(TENSORD_BACKENDS_CPU_LINALG_LANES_HOUSEHOLDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_LINALG_LANES_HOUSEHOLDER_INL_H_
#undef TENSORD_BACKENDS_CPU_LINALG_LANES_HOUSEHOLDER_INL_H_
#else
#define TENSORD_BACKENDS_CPU_LINALG_LANES_HOUSEHOLDER_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "backends/cpu/linalg/lanes/lanes-inl.h"

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

// Squares of less than kTooSmall lose digits; kEnlarged times as long, they are as large as the largest.
template <typename T>
constexpr T kTooSmall = sizeof(T) == 4 ? T(0x1p-70) : T(0x1p-900);
template <typename T>
constexpr T kEnlarged = sizeof(T) == 4 ? T(0x1p90) : T(0x1p850);

template <class N>
HWY_INLINE Reals<typename N::Real> SquareBelow(LaneMatrix<N> a, int64_t j, Reals<typename N::Real> scale) {
  Reals<typename N::Real> square = hn::Zero(Tag<typename N::Real>());
  for (int64_t i = j + 1; i < a.rows; ++i) square = AddSquare(Scale(a(i, j), scale), square);
  return square;
}

// Turns a(j:, j) into a multiple of e1 by H^H, H = I - tau v v^H: leaves the multiple at the diagonal and v, whose
// first entry is 1, below it. Returns tau. As larfg; entries are scaled, so that squares are numbers.
template <class N>
HWY_INLINE N MakeReflector(LaneMatrix<N> a, int64_t j) {
  using T = typename N::Real;
  const Tag<T> d;
  const Reals<T> one = SetReal(T(1));
  Reals<T> scale = one, unscale = one, below = SquareBelow(a, j, one);
  N alpha = a(j, j);
  const auto is_small = hn::Lt(AddSquare(alpha, below), SetReal(kTooSmall<T>));
  if (!hn::AllFalse(d, is_small)) {
    scale = hn::IfThenElse(is_small, SetReal(kEnlarged<T>), one);
    unscale = hn::IfThenElse(is_small, SetReal(1 / kEnlarged<T>), one);
    below = SquareBelow(a, j, scale);
    alpha = Scale(alpha, scale);
  }
  const Reals<T> norm = hn::Sqrt(AddSquare(alpha, below));
  const Reals<T> beta = hn::Neg(hn::CopySign(norm, alpha.re));
  auto is_done = hn::Eq(below, hn::Zero(d));
  if constexpr (N::kParts == 2) is_done = hn::And(is_done, hn::Eq(alpha.im, hn::Zero(d)));
  N tau, shifted = alpha;
  shifted.re = hn::Sub(alpha.re, beta);
  const Reals<T> reciprocal = hn::Div(one, beta);
  tau.re = hn::Mul(hn::Sub(beta, alpha.re), reciprocal);
  if constexpr (N::kParts == 2) tau.im = hn::Neg(hn::Mul(alpha.im, reciprocal));
  const N zero = Constant<N>(0);
  const N factor = Select(is_done, zero, Divide(Constant<N>(1), shifted));
  for (int64_t i = j + 1; i < a.rows; ++i) a.Set(i, j, Mul(Scale(a(i, j), scale), factor));
  a.Set(j, j, Scale(Select(is_done, alpha, FromReal<N>(beta)), unscale));
  return Select(is_done, zero, tau);
}

// x(j:) -= tau v (v^H x(j:)) of the reflector in column j of a.
template <class N>
HWY_INLINE void ApplyReflector(LaneMatrix<N> a, int64_t j, N tau, typename N::Real* x) {
  const typename N::Real* const v = a.at(0, j);
  N sum = Get<N>(x + j * N::kStep);
  for (int64_t i = j + 1; i < a.rows; ++i) sum = ConjMulAdd(Get<N>(v + i * N::kStep), Get<N>(x + i * N::kStep), sum);
  sum = Mul(tau, sum);
  Put(Sub(Get<N>(x + j * N::kStep), sum), x + j * N::kStep);
  for (int64_t i = j + 1; i < a.rows; ++i) {
    Put(NegMulAdd(Get<N>(v + i * N::kStep), sum, Get<N>(x + i * N::kStep)), x + i * N::kStep);
  }
}

// Exchanges column j and, lane by lane, the longest of those from j on, and writes its number.
template <class N>
HWY_INLINE void PivotColumn(LaneMatrix<N> a, int64_t columns, int64_t j, typename N::Real* pivot_at) {
  using T = typename N::Real;
  const Tag<T> d;
  Reals<T> most = hn::Set(d, T(-1)), pivot = hn::Zero(d);
  for (int64_t c = j; c < columns; ++c) {
    Reals<T> square = hn::Zero(d);
    for (int64_t i = j; i < a.rows; ++i) square = AddSquare(a(i, c), square);
    const auto longer = hn::Lt(most, square);
    most = hn::IfThenElse(longer, square, most);
    pivot = hn::IfThenElse(longer, SetReal(static_cast<T>(c)), pivot);
  }
  hn::Store(pivot, d, pivot_at);
  for (int64_t c = j + 1; c < columns; ++c) {
    const auto here = hn::Eq(pivot, SetReal(static_cast<T>(c)));
    if (hn::AllFalse(d, here)) continue;
    for (int64_t i = 0; i < a.rows; ++i) SwapWhere<N>(here, a.at(i, j), a.at(i, c));
  }
}

// Leaves R and, below it, the reflectors of Q, with the factors tau. With `pivots` columns are exchanged first, so that
// the columns of R become shorter and shorter.
template <class N>
HWY_NOINLINE void FactorQr(LaneMatrix<N> a, int64_t columns, LaneMatrix<N> tau, typename N::Real* pivots) {
  for (int64_t j = 0; j < std::min(a.rows, columns); ++j) {
    if (pivots != nullptr) PivotColumn(a, columns, j, pivots + j * N::kStep);
    const N factor = MakeReflector(a, j);
    tau.Set(j, 0, factor);
    for (int64_t c = j + 1; c < columns; ++c) ApplyReflector(a, j, Conj(factor), a.at(0, c));
  }
}

// x := Q x for the product of `count` reflectors of a. With `is_identity`, columns of x before `from` and rows after
// their own number are known to be those of the identity.
template <class N>
HWY_NOINLINE void ApplyQ(LaneMatrix<N> a, int64_t count, LaneMatrix<N> tau, LaneMatrix<N> x, int64_t columns,
                         bool is_identity) {
  for (int64_t j = count - 1; j >= 0; --j) {
    const N factor = tau(j, 0);
    for (int64_t c = is_identity ? j : 0; c < columns; ++c) ApplyReflector(a, j, factor, x.at(0, c));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

#endif  // TENSORD_BACKENDS_CPU_LINALG_LANES_HOUSEHOLDER_INL_H_
