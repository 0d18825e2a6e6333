#include <algorithm>

#include "backends/cpu/linalg/lanes/loop_tables.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linalg/lanes/svd_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/linalg/lanes/dtypes-inl.h"
#include "backends/cpu/linalg/lanes/householder-inl.h"
#include "backends/cpu/linalg/lanes/lanes-inl.h"
#include "backends/cpu/linalg/lanes/rotation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

// Columns shorter than this, some 2^-390 of the longest, have no direction that is worth rotations.
constexpr double kNoLength = 0x1p-190;

// Chooses the rotation that makes columns p and q of x orthogonal, and returns the lanes in which it is needed.
template <class N>
HWY_INLINE Lanes<typename N::Real> ChooseRotation(LaneMatrix<N> x, int64_t p, int64_t q,
                                                  Reals<typename N::Real> tolerance_square, Rotation<N>* rotation) {
  using T = typename N::Real;
  const Tag<T> d;
  const T* const a = x.at(0, p);
  const T* const b = x.at(0, q);
  Reals<T> a_square = hn::Zero(d), b_square = hn::Zero(d);
  N product = Constant<N>(0);
  for (int64_t i = 0; i < x.rows; ++i) {
    const N ai = Get<N>(a + i * N::kStep), bi = Get<N>(b + i * N::kStep);
    a_square = AddSquare(ai, a_square);
    b_square = AddSquare(bi, b_square);
    product = ConjMulAdd(ai, bi, product);
  }
  const Reals<T> product_square = AddSquare(product, hn::Zero(d));
  const Reals<T> limit = hn::Mul(hn::Mul(a_square, tolerance_square), b_square);
  const auto have_length = hn::Lt(SetReal(T(kNoLength * kNoLength)), hn::Min(a_square, b_square));
  const auto needed = hn::And(have_length, hn::Lt(limit, product_square));
  if (!hn::AllFalse(d, needed)) {
    *rotation = MakeRotation(needed, hn::Sub(b_square, a_square), product, product_square);
  }
  return needed;
}

// M. R. Hestenes (1958): rotates pairs of columns of the square x until all are orthogonal, and those of `turns`
// likewise.
template <class N>
HWY_NOINLINE void Orthogonalize(LaneMatrix<N> x, LaneMatrix<N> turns, LaneInfo<typename N::Real>* info) {
  using T = typename N::Real;
  constexpr T kEpsilon = std::numeric_limits<T>::epsilon();
  const Reals<T> tolerance_square = SetReal(kEpsilon * kEpsilon * static_cast<T>(x.rows));
  const auto choose = [&](int64_t p, int64_t q, Rotation<N>* rotation)
                          HWY_ATTR { return ChooseRotation(x, p, q, tolerance_square, rotation); };
  const auto apply = [&](int64_t p, int64_t q, const Rotation<N>& rotation) HWY_ATTR {
    Rotate<N>(rotation, x.rows, x.at(0, p), N::kStep, x.at(0, q), N::kStep);
    Rotate<N>(rotation, turns.rows, turns.at(0, p), N::kStep, turns.at(0, q), N::kStep);
  };
  RotateUntilDone<N>(x.rows, choose, apply, info);
}

// Lengths of the columns of the square x, which are divided by them, in descending order; `turns` goes along.
template <class N>
HWY_NOINLINE void SortByLength(LaneMatrix<N> x, LaneMatrix<N> turns, typename N::Real* lengths) {
  using T = typename N::Real;
  const Tag<T> d;
  const int64_t n = x.rows;
  for (int64_t j = 0; j < n; ++j) {
    Reals<T> square = hn::Zero(d);
    for (int64_t i = 0; i < n; ++i) square = AddSquare(x(i, j), square);
    const Reals<T> length = hn::Sqrt(square);
    hn::Store(length, d, lengths + j * kLanes<T>);
    const auto has_length = hn::Lt(SetReal(T(kNoLength)), length);
    const Reals<T> reciprocal = hn::IfThenElseZero(has_length, hn::Div(SetReal(T(1)), length));
    for (int64_t i = 0; i < n; ++i) x.Set(i, j, Scale(x(i, j), reciprocal));
  }
  for (int64_t end = n; end > 1; --end) {
    for (int64_t j = 0; j + 1 < end; ++j) {
      T* const here = lengths + j * kLanes<T>;
      T* const next = here + kLanes<T>;
      const auto swaps = hn::Lt(hn::Load(d, here), hn::Load(d, next));
      if (hn::AllFalse(d, swaps)) continue;
      SwapWhere<RealLanes<T>>(swaps, here, next);
      for (int64_t i = 0; i < n; ++i) SwapWhere<N>(swaps, x.at(i, j), x.at(i, j + 1));
      for (int64_t i = 0; i < turns.rows; ++i) SwapWhere<N>(swaps, turns.at(i, j), turns.at(i, j + 1));
    }
  }
}

// Replaces columns of x of length zero by columns of the Q of x, which are orthogonal to the others.
template <class N>
HWY_NOINLINE void Complete(LaneMatrix<N> x, const typename N::Real* lengths, LaneMatrix<N> copy, LaneMatrix<N> q,
                           LaneMatrix<N> tau) {
  using T = typename N::Real;
  const Tag<T> d;
  const int64_t n = x.rows;
  const auto is_short = [&](int64_t j)
                            HWY_ATTR { return hn::Le(hn::Load(d, lengths + j * kLanes<T>), SetReal(T(kNoLength))); };
  if (hn::AllFalse(d, is_short(n - 1))) return;
  // With zeros that are positive: the sign of one would be that of a reflector.
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) copy.Set(i, j, AddToParts(x(i, j), hn::Zero(d)));
  }
  FactorQr<N>(copy, n, tau, nullptr);
  SetIdentity(q, n);
  ApplyQ(copy, n, tau, q, n, true);
  for (int64_t j = 0; j < n; ++j) {
    const auto made_up = is_short(j);
    for (int64_t i = 0; i < n; ++i) x.Set(i, j, Select(made_up, q(i, j), x(i, j)));
  }
}

template <class N>
HWY_NOINLINE void ConjugateTranspose(LaneMatrix<N> from, int64_t columns, LaneMatrix<N> to) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < from.rows; ++i) to.Set(j, i, Conj(from(i, j)));
  }
}

// The tall A (or A^H) = Q R P^T with columns exchanged by length, R^H = W S J^H by rotations from the right, so that A
// = (Q J) S (P W)^H. After Z. Drmač and K. Veselić, "New fast and accurate Jacobi SVD algorithm" (2008): R^H is nearly
// diagonal if A is graded, and its rows keep the entries that small values depend on.
template <class N, typename Element>
SmallMatrixFailure Svd(const SmallMatrixBatch& batch, void* scratch) {
  using T = typename N::Real;
  const Tag<T> d;
  const int64_t m = batch.rows, n = batch.columns, k = std::min(m, n), tall = std::max(m, n);
  const bool is_wide = m < n, has_vectors = !batch.only_values;
  const int64_t side = batch.full ? tall : k;
  LaneScratch<N> room(scratch);
  const LaneMatrix<N> loaded = room.Matrix(m, n), a = room.Matrix(tall, k), tau = room.Matrix(k, 1);
  T* const pivots = room.Vector(k);
  T* const values = room.Vector(k);
  const LaneMatrix<N> x = room.Matrix(k, k);
  LaneMatrix<N> turns{x.data, 0}, copy, q, q_tau, left, turned;
  if (has_vectors) {
    turns = room.Matrix(k, k), copy = room.Matrix(k, k), q = room.Matrix(k, k), q_tau = room.Matrix(k, 1);
    left = room.Matrix(tall, side), turned = room.Matrix(tall, side);
  }
  const Element* const from = static_cast<const Element*>(batch.operands[0]);
  constexpr int64_t kParts = N::kParts;
  SmallMatrixFailure failure;
  for (int64_t begin = 0; begin < batch.count; begin += kLanes<T>) {
    const int64_t count = std::min(kLanes<T>, batch.count - begin);
    LoadLanes(from + begin * m * n * kParts, m * n * kParts, m * n * kParts, count, is_wide ? loaded.data : a.data);
    if (is_wide) ConjugateTranspose(loaded, n, a);
    const LaneScaling<T> scaling = ScaleLanes<T, kJacobiScale>(m * n * kParts, a.data);
    FactorQr(a, k, tau, pivots);
    for (int64_t j = 0; j < k; ++j) {
      for (int64_t i = 0; i < k; ++i) x.Set(i, j, j <= i ? Conj(a(j, i)) : Constant<N>(0));
    }
    for (int64_t j = k - 1; j >= 0; --j) {
      const Reals<T> pivot = hn::Load(d, pivots + j * N::kStep);
      for (int64_t i = j + 1; i < k; ++i) {
        const auto here = hn::Eq(pivot, SetReal(static_cast<T>(i)));
        if (hn::AllFalse(d, here)) continue;
        for (int64_t c = 0; c < k; ++c) SwapWhere<N>(here, x.at(j, c), x.at(i, c));
      }
    }
    if (has_vectors) SetIdentity(turns, k);
    LaneInfo<T> info;
    Orthogonalize(x, turns, &info);
    SortByLength(x, turns, values);
    if (has_vectors) Complete(x, values, copy, q, q_tau);
    UnscaleLanes(scaling, k, values);
    Element* const s = static_cast<Element*>(batch.results[1]) + begin * k;
    StoreLanes(values, scaling.poison, k, k, count, s);
    if (failure.matrix < 0) failure = info.First(begin, count);
    if (!has_vectors) continue;
    SetIdentity(left, side);
    for (int64_t j = 0; j < k; ++j) std::copy(turns.at(0, j), turns.at(0, j + 1), left.at(0, j));
    ApplyQ(a, k, tau, left, side, false);
    // For A: (left, x^H); for A^H: (x, left^H).
    turned.rows = is_wide ? side : k;
    ConjugateTranspose(is_wide ? left : x, turned.rows, turned);
    const int64_t u_size = m * (is_wide ? k : side) * kParts, v_size = (is_wide ? side : k) * n * kParts;
    Element* const u = static_cast<Element*>(batch.results[0]) + begin * u_size;
    Element* const v = static_cast<Element*>(batch.results[2]) + begin * v_size;
    StoreLanes(is_wide ? x.data : left.data, scaling.poison, u_size, u_size, count, u);
    StoreLanes(turned.data, scaling.poison, v_size, v_size, count, v);
  }
  return failure;
}

// F32 is computed in F64, in which the squares of all its numbers, and their products, are numbers.
SmallMatrixLoops Loops(DType dtype) {
  return LoopsOfDType<double>(dtype, []<class N, typename Element>() { return &Svd<N, Element>; });
}

#else

SmallMatrixLoops Loops(DType) { return {}; }

#endif

}  // namespace

SmallMatrixLoops BestSvdLoops(DType dtype) { return Loops(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestSvdLoops);

SmallMatrixLoops GetSvdLoops(DType dtype) { return HWY_DYNAMIC_DISPATCH(BestSvdLoops)(dtype); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
