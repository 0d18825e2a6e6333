// Matrices that lie across lanes: each entry is a vector, and every lane of it belongs to a matrix of its own.
#if defined(TENSORD_BACKENDS_CPU_LINALG_LANES_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_LINALG_LANES_LANES_INL_H_
#undef TENSORD_BACKENDS_CPU_LINALG_LANES_LANES_INL_H_
#else
#define TENSORD_BACKENDS_CPU_LINALG_LANES_LANES_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "backends/cpu/linalg/lanes/loops.h"
#include "backends/cpu/linalg/lanes/numbers-inl.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Column-major, in memory that is aligned to vectors and belongs to somebody else.
template <class N>
struct LaneMatrix {
  using Real = typename N::Real;
  Real* data = nullptr;
  int64_t rows = 0;

  HWY_INLINE Real* at(int64_t i, int64_t j) const { return data + (j * rows + i) * N::kStep; }
  HWY_INLINE N operator()(int64_t i, int64_t j) const { return Get<N>(at(i, j)); }
  HWY_INLINE void Set(int64_t i, int64_t j, N x) const { Put(x, at(i, j)); }
};

// Gives out the scratch of one call. The callers' sum is SmallMatrixScratchEntries.
template <class N>
class LaneScratch {
 public:
  using Real = typename N::Real;
  explicit LaneScratch(void* scratch) : next_(static_cast<Real*>(scratch)) {}

  LaneMatrix<N> Matrix(int64_t rows, int64_t columns) {
    Real* const data = next_;
    next_ += rows * columns * N::kStep;
    return {data, rows};
  }
  // Allocates a vector of reals, with the room of numbers.
  Real* Vector(int64_t size) { return Matrix(size, 1).data; }

 private:
  Real* next_;
};

template <class N>
HWY_INLINE void SetIdentity(LaneMatrix<N> a, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) a.Set(i, j, Constant<N>(i == j ? 1 : 0));
  }
}

// Each stage takes all elements with even places before those with odd ones; after log2(lanes) of them the place in the
// vector and the vector's number have changed their roles.
template <typename T>
HWY_INLINE void TransposeLanes(Reals<T> (&v)[kLanes<T>]) {
  const Tag<T> d;
  for (int64_t stage = 1; stage < kLanes<T>; stage *= 2) {
    Reals<T> next[kLanes<T>];
    for (int64_t i = 0; i < kLanes<T> / 2; ++i) {
      next[i] = hn::ConcatEven(d, v[2 * i + 1], v[2 * i]);
      next[i + kLanes<T> / 2] = hn::ConcatOdd(d, v[2 * i + 1], v[2 * i]);
    }
    for (int64_t i = 0; i < kLanes<T>; ++i) v[i] = next[i];
  }
}

// Element is a lane's type, or float where lanes are double.
template <typename T, typename Element>
HWY_INLINE Reals<T> LoadRow(const Element* from) {
  if constexpr (std::is_same_v<T, Element>) {
    return hn::LoadU(Tag<T>(), from);
  } else {
    return hn::PromoteTo(Tag<T>(), hn::LoadU(hn::Rebind<Element, Tag<T>>(), from));
  }
}

template <typename T, typename Element>
HWY_INLINE void StoreRow(Reals<T> row, Element* to) {
  if constexpr (std::is_same_v<T, Element>) {
    hn::StoreU(row, Tag<T>(), to);
  } else {
    const hn::Rebind<Element, Tag<T>> d;
    hn::StoreU(hn::DemoteTo(d, row), d, to);
  }
}

// `size` reals of each of `count` matrices that lie `step` elements apart, to lanes. Lanes without a matrix get the
// last one's.
template <typename T, typename Element>
HWY_NOINLINE void LoadLanes(const Element* from, int64_t step, int64_t size, int64_t count, T* to) {
  constexpr int64_t kWidth = kLanes<T>;
  const auto source = [&](int64_t lane) { return from + std::min(lane, count - 1) * step; };
  if (size < kWidth) {
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t lane = 0; lane < kWidth; ++lane) to[i * kWidth + lane] = static_cast<T>(source(lane)[i]);
    }
    return;
  }
  for (int64_t begin = 0; begin < size; begin += kWidth) {
    const int64_t i = std::min(begin, size - kWidth);  // the last block overlaps the one before
    Reals<T> rows[kWidth];
    for (int64_t lane = 0; lane < kWidth; ++lane) rows[lane] = LoadRow<T>(source(lane) + i);
    TransposeLanes<T>(rows);
    for (int64_t k = 0; k < kWidth; ++k) hn::Store(rows[k], Tag<T>(), to + (i + k) * kWidth);
  }
}

// The way back, plus `offset`: lanes that are NaN there become NaN, and zeros positive.
template <typename T, typename Element>
HWY_NOINLINE void StoreLanes(const T* from, Reals<T> offset, int64_t step, int64_t size, int64_t count, Element* to) {
  constexpr int64_t kWidth = kLanes<T>;
  const Tag<T> d;
  if (size < kWidth) {
    alignas(64) T entry[kWidth];
    for (int64_t i = 0; i < size; ++i) {
      hn::Store(hn::Add(hn::Load(d, from + i * kWidth), offset), d, entry);
      for (int64_t lane = 0; lane < count; ++lane) to[lane * step + i] = static_cast<Element>(entry[lane]);
    }
    return;
  }
  for (int64_t begin = 0; begin < size; begin += kWidth) {
    const int64_t i = std::min(begin, size - kWidth);
    Reals<T> rows[kWidth];
    for (int64_t k = 0; k < kWidth; ++k) rows[k] = hn::Add(hn::Load(d, from + (i + k) * kWidth), offset);
    TransposeLanes<T>(rows);
    if (count == kWidth) {
      for (int64_t lane = 0; lane < kWidth; ++lane) StoreRow<T>(rows[lane], to + lane * step + i);
    } else {
      alignas(64) T lanes[kWidth * kWidth];
      for (int64_t lane = 0; lane < kWidth; ++lane) hn::Store(rows[lane], d, lanes + lane * kWidth);
      for (int64_t lane = 0; lane < count; ++lane) {
        for (int64_t k = 0; k < kWidth; ++k) to[lane * step + i + k] = static_cast<Element>(lanes[lane * kWidth + k]);
      }
    }
  }
}

// Powers of two that bring the largest entry of each matrix near 2^kTarget, in two factors because one may not be a
// number. Matrices with an entry that is not finite become zero, and their results NaN by adding `poison`.
template <typename T>
struct LaneScaling {
  Reals<T> up[2], down[2];
  Reals<T> poison;  // zero or NaN
};

// Makes matrices with an entry that is not finite zero; NaN in their lanes, and zero in the others.
template <typename T>
HWY_NOINLINE Reals<T> ClearNonFinite(int64_t size, T* data) {
  const Tag<T> d;
  Reals<T> zero = hn::Zero(d);
  for (int64_t i = 0; i < size; ++i) zero = hn::MulAdd(hn::Load(d, data + i * kLanes<T>), hn::Zero(d), zero);
  const auto finite = hn::Eq(zero, hn::Zero(d));
  if (hn::AllTrue(d, finite)) return hn::Zero(d);
  for (int64_t i = 0; i < size; ++i) {
    hn::Store(hn::IfThenElseZero(finite, hn::Load(d, data + i * kLanes<T>)), d, data + i * kLanes<T>);
  }
  return hn::IfThenZeroElse(finite, hn::Set(d, std::numeric_limits<T>::quiet_NaN()));
}

template <typename T>
HWY_INLINE Reals<T> PowerOfTwo(hn::Vec<hn::RebindToSigned<Tag<T>>> exponent) {
  constexpr int kMantissaBits = std::numeric_limits<T>::digits - 1, kBias = std::numeric_limits<T>::max_exponent - 1;
  const hn::RebindToSigned<Tag<T>> di;
  return hn::BitCast(Tag<T>(), hn::ShiftLeft<kMantissaBits>(hn::Add(exponent, hn::Set(di, kBias))));
}

// Scales `size` reals in place.
template <typename T, int kTarget>
HWY_NOINLINE LaneScaling<T> ScaleLanes(int64_t size, T* data) {
  constexpr int kMantissaBits = std::numeric_limits<T>::digits - 1, kBias = std::numeric_limits<T>::max_exponent - 1;
  const Tag<T> d;
  const hn::RebindToSigned<Tag<T>> di;
  LaneScaling<T> scaling;
  scaling.poison = ClearNonFinite(size, data);
  Reals<T> largest = hn::Zero(d);
  for (int64_t i = 0; i < size; ++i) largest = hn::Max(largest, hn::Abs(hn::Load(d, data + i * kLanes<T>)));
  // For a denormal this is one too few, and 2^-51 of the target is still a good place to be.
  const auto biased =
      hn::BitCast(di, hn::ShiftRight<kMantissaBits>(hn::BitCast(hn::RebindToUnsigned<Tag<T>>(), largest)));
  const auto shift = hn::Sub(hn::Set(di, kTarget + kBias), biased);
  const auto half = hn::ShiftRight<1>(shift);
  const auto rest = hn::Sub(shift, half);
  scaling.up[0] = PowerOfTwo<T>(half), scaling.up[1] = PowerOfTwo<T>(rest);
  scaling.down[0] = PowerOfTwo<T>(hn::Neg(half)), scaling.down[1] = PowerOfTwo<T>(hn::Neg(rest));
  for (int64_t i = 0; i < size; ++i) {
    const Reals<T> x = hn::Load(d, data + i * kLanes<T>);
    hn::Store(hn::Mul(hn::Mul(x, scaling.up[0]), scaling.up[1]), d, data + i * kLanes<T>);
  }
  return scaling;
}

template <typename T>
HWY_INLINE void UnscaleLanes(const LaneScaling<T>& scaling, int64_t size, T* data) {
  const Tag<T> d;
  for (int64_t i = 0; i < size; ++i) {
    const Reals<T> x = hn::Load(d, data + i * kLanes<T>);
    hn::Store(hn::Mul(hn::Mul(x, scaling.down[0]), scaling.down[1]), d, data + i * kLanes<T>);
  }
}

// Remembers the first failure of each lane.
template <typename T>
class LaneInfo {
 public:
  HWY_INLINE LaneInfo() : info_(hn::Zero(Tag<T>())) {}

  HWY_INLINE void Fail(Lanes<T> where, int64_t info) {
    const Tag<T> d;
    const auto first = hn::And(where, hn::Eq(info_, hn::Zero(d)));
    info_ = hn::IfThenElse(first, hn::Set(d, static_cast<T>(info)), info_);
  }

  HWY_INLINE void Forgive(Lanes<T> where) { info_ = hn::IfThenZeroElse(where, info_); }

  // Returns the first matrix of `count` that has failed, counted from `begin`.
  HWY_INLINE SmallMatrixFailure First(int64_t begin, int64_t count) const {
    const Tag<T> d;
    if (hn::AllTrue(d, hn::Eq(info_, hn::Zero(d)))) return {};
    alignas(64) T info[kLanes<T>];
    hn::Store(info_, d, info);
    for (int64_t lane = 0; lane < count; ++lane) {
      if (info[lane] != 0) return {begin + lane, static_cast<int64_t>(info[lane])};
    }
    return {};
  }

 private:
  Reals<T> info_;
};

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

#endif  // TENSORD_BACKENDS_CPU_LINALG_LANES_LANES_INL_H_
