#include <algorithm>

#include "backends/cpu/linalg/lanes/loop_tables.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linalg/lanes/eigh_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/linalg/lanes/dtypes-inl.h"
#include "backends/cpu/linalg/lanes/lanes-inl.h"
#include "backends/cpu/linalg/lanes/rotation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

// Rotations of less than this square are skipped: 2^-120 of the largest entries, the remains of entries that vanish.
constexpr double kNoSquare = 0x1p160;

// Chooses the rotation that makes A(p, q) zero, p < q, and returns the lanes in which it is needed; reads the lower
// triangle of A.
template <class N>
HWY_INLINE Lanes<typename N::Real> ChooseRotation(LaneMatrix<N> a, int64_t p, int64_t q, Rotation<N>* rotation) {
  using T = typename N::Real;
  const Tag<T> d;
  constexpr T kEpsilon = std::numeric_limits<T>::epsilon();
  const N off = Conj(a(q, p));
  const Reals<T> first = a(p, p).re, second = a(q, q).re;
  const Reals<T> off_square = AddSquare(off, hn::Zero(d));
  const Reals<T> limit = hn::Abs(hn::Mul(hn::Mul(first, SetReal(kEpsilon * kEpsilon)), second));
  const auto needed = hn::Lt(hn::Max(limit, SetReal(T(kNoSquare))), off_square);
  if (!hn::AllFalse(d, needed)) *rotation = MakeRotation(needed, hn::Sub(second, first), off, off_square);
  return needed;
}

// A := J^H A J for the rotation J, and vectors := vectors J.
template <class N>
HWY_INLINE void ApplyRotation(LaneMatrix<N> a, LaneMatrix<N> vectors, int64_t p, int64_t q, Rotation<N> rotation) {
  a.Set(p, p, FromReal<N>(hn::Sub(a(p, p).re, rotation.change)));
  a.Set(q, q, FromReal<N>(hn::Add(a(q, q).re, rotation.change)));
  a.Set(q, p, Select(rotation.lanes, Constant<N>(0), a(q, p)));
  const int64_t across = a.rows * N::kStep;
  Rotation<N> of_rows = rotation;
  of_rows.sine = Conj(rotation.sine);
  Rotate<N>(of_rows, p, a.at(p, 0), across, a.at(q, 0), across);
  Rotate<N, true>(rotation, q - p - 1, a.at(p + 1, p), N::kStep, a.at(q, p + 1), across);
  Rotate<N>(rotation, a.rows - q - 1, a.at(q + 1, p), N::kStep, a.at(q + 1, q), N::kStep);
  Rotate<N>(rotation, vectors.rows, vectors.at(0, p), N::kStep, vectors.at(0, q), N::kStep);
}

// C. G. J. Jacobi's cyclic method: rotates until the matrix is diagonal.
template <class N>
HWY_NOINLINE void Diagonalize(LaneMatrix<N> a, LaneMatrix<N> vectors, LaneInfo<typename N::Real>* info) {
  const auto choose = [&](int64_t p, int64_t q, Rotation<N>* rotation)
                          HWY_ATTR { return ChooseRotation(a, p, q, rotation); };
  const auto apply = [&](int64_t p, int64_t q, const Rotation<N>& rotation)
                         HWY_ATTR { ApplyRotation(a, vectors, p, q, rotation); };
  RotateUntilDone<N>(a.rows, choose, apply, info);
}

template <class N>
HWY_NOINLINE void SortAscending(typename N::Real* values, int64_t n, LaneMatrix<N> vectors) {
  using T = typename N::Real;
  const Tag<T> d;
  for (int64_t end = n; end > 1; --end) {
    for (int64_t j = 0; j + 1 < end; ++j) {
      T* const here = values + j * kLanes<T>;
      T* const next = here + kLanes<T>;
      const auto swaps = hn::Lt(hn::Load(d, next), hn::Load(d, here));
      if (hn::AllFalse(d, swaps)) continue;
      SwapWhere<RealLanes<T>>(swaps, here, next);
      for (int64_t i = 0; i < vectors.rows; ++i) SwapWhere<N>(swaps, vectors.at(i, j), vectors.at(i, j + 1));
    }
  }
}

template <class N, typename Element>
SmallMatrixFailure Eigh(const SmallMatrixBatch& batch, void* scratch) {
  using T = typename N::Real;
  const Tag<T> d;
  const int64_t n = batch.rows, size = n * n * N::kParts;
  const bool has_vectors = !batch.only_values;
  LaneScratch<N> room(scratch);
  const LaneMatrix<N> a = room.Matrix(n, n);
  T* const values = room.Vector(n);
  const LaneMatrix<N> vectors = has_vectors ? room.Matrix(n, n) : LaneMatrix<N>{a.data, 0};
  const Element* const from = static_cast<const Element*>(batch.operands[0]);
  SmallMatrixFailure failure;
  for (int64_t begin = 0; begin < batch.count; begin += kLanes<T>) {
    const int64_t count = std::min(kLanes<T>, batch.count - begin);
    LoadLanes(from + begin * size, size, size, count, a.data);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < j; ++i) a.Set(i, j, Constant<N>(0));
      a.Set(j, j, FromReal<N>(a(j, j).re));
    }
    const LaneScaling<T> scaling = ScaleLanes<T, kJacobiScale>(size, a.data);
    if (has_vectors) SetIdentity(vectors, n);
    LaneInfo<T> info;
    Diagonalize(a, vectors, &info);
    for (int64_t j = 0; j < n; ++j) hn::Store(a(j, j).re, d, values + j * kLanes<T>);
    SortAscending(values, n, vectors);
    UnscaleLanes(scaling, n, values);
    StoreLanes(values, scaling.poison, n, n, count, static_cast<Element*>(batch.results[0]) + begin * n);
    if (has_vectors) {
      StoreLanes(vectors.data, scaling.poison, size, size, count,
                 static_cast<Element*>(batch.results[1]) + begin * size);
    }
    if (failure.matrix < 0) failure = info.First(begin, count);
  }
  return failure;
}

// F32 is computed in F64, in which the squares of all its numbers, and their products, are numbers.
SmallMatrixLoops Loops(DType dtype) {
  return LoopsOfDType<double>(dtype, []<class N, typename Element>() { return &Eigh<N, Element>; });
}

#else

SmallMatrixLoops Loops(DType) { return {}; }

#endif

}  // namespace

SmallMatrixLoops BestEighLoops(DType dtype) { return Loops(dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestEighLoops);

SmallMatrixLoops GetEighLoops(DType dtype) { return HWY_DYNAMIC_DISPATCH(BestEighLoops)(dtype); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
