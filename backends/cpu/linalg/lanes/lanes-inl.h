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
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
using Reals = hn::Vec<Tag<T>>;
template <typename T>
using Lanes = hn::Mask<Tag<T>>;
template <typename T>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

// One number of every matrix.
template <typename T>
struct RealLanes {
  using Real = T;
  static constexpr int64_t kParts = 1;         // reals of a number
  static constexpr int64_t kStep = kLanes<T>;  // elements from one entry to the next
  Reals<T> re;
};

template <typename T>
struct ComplexLanes {
  using Real = T;
  static constexpr int64_t kParts = 2;  // the real and the imaginary one
  static constexpr int64_t kStep = 2 * kLanes<T>;
  Reals<T> re, im;
};

template <typename T>
HWY_INLINE Reals<T> SetReal(T value) {
  return hn::Set(Tag<T>(), value);
}

template <class N>
HWY_INLINE N Get(const typename N::Real* at) {
  const Tag<typename N::Real> d;
  if constexpr (N::kParts == 1) {
    return {hn::Load(d, at)};
  } else {
    return {hn::Load(d, at), hn::Load(d, at + hn::MaxLanes(d))};
  }
}

template <class N>
HWY_INLINE void Put(N x, typename N::Real* at) {
  const Tag<typename N::Real> d;
  hn::Store(x.re, d, at);
  if constexpr (N::kParts == 2) hn::Store(x.im, d, at + hn::MaxLanes(d));
}

template <class N>
HWY_INLINE N FromReal(Reals<typename N::Real> x) {
  if constexpr (N::kParts == 1) {
    return {x};
  } else {
    return {x, hn::Zero(Tag<typename N::Real>())};
  }
}

template <class N>
HWY_INLINE N AddToParts(N a, Reals<typename N::Real> b) {
  a.re = hn::Add(a.re, b);
  if constexpr (N::kParts == 2) a.im = hn::Add(a.im, b);
  return a;
}

template <class N>
HWY_INLINE N Constant(double value) {
  return FromReal<N>(SetReal(static_cast<typename N::Real>(value)));
}

template <class N>
HWY_INLINE N Conj(N x) {
  if constexpr (N::kParts == 2) x.im = hn::Neg(x.im);
  return x;
}

template <class N>
HWY_INLINE N Add(N a, N b) {
  a.re = hn::Add(a.re, b.re);
  if constexpr (N::kParts == 2) a.im = hn::Add(a.im, b.im);
  return a;
}

template <class N>
HWY_INLINE N Sub(N a, N b) {
  a.re = hn::Sub(a.re, b.re);
  if constexpr (N::kParts == 2) a.im = hn::Sub(a.im, b.im);
  return a;
}

// a·s of a real s.
template <class N>
HWY_INLINE N Scale(N a, Reals<typename N::Real> s) {
  a.re = hn::Mul(a.re, s);
  if constexpr (N::kParts == 2) a.im = hn::Mul(a.im, s);
  return a;
}

// c + a·b.
template <class N>
HWY_INLINE N MulAdd(N a, N b, N c) {
  c.re = hn::MulAdd(a.re, b.re, c.re);
  if constexpr (N::kParts == 2) {
    c.re = hn::NegMulAdd(a.im, b.im, c.re);
    c.im = hn::MulAdd(a.im, b.re, hn::MulAdd(a.re, b.im, c.im));
  }
  return c;
}

// c - a·b.
template <class N>
HWY_INLINE N NegMulAdd(N a, N b, N c) {
  c.re = hn::NegMulAdd(a.re, b.re, c.re);
  if constexpr (N::kParts == 2) {
    c.re = hn::MulAdd(a.im, b.im, c.re);
    c.im = hn::NegMulAdd(a.im, b.re, hn::NegMulAdd(a.re, b.im, c.im));
  }
  return c;
}

// c + conj(a)·b.
template <class N>
HWY_INLINE N ConjMulAdd(N a, N b, N c) {
  return MulAdd(Conj(a), b, c);
}

template <class N>
HWY_INLINE N Mul(N a, N b) {
  if constexpr (N::kParts == 1) {
    return {hn::Mul(a.re, b.re)};
  } else {
    return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)), hn::MulAdd(a.im, b.re, hn::Mul(a.re, b.im))};
  }
}

// c + |a|².
template <class N>
HWY_INLINE Reals<typename N::Real> AddSquare(N a, Reals<typename N::Real> c) {
  c = hn::MulAdd(a.re, a.re, c);
  if constexpr (N::kParts == 2) c = hn::MulAdd(a.im, a.im, c);
  return c;
}

// |re| + |im|, by which LAPACK chooses pivots.
template <class N>
HWY_INLINE Reals<typename N::Real> Magnitude(N a) {
  if constexpr (N::kParts == 1) {
    return hn::Abs(a.re);
  } else {
    return hn::Add(hn::Abs(a.re), hn::Abs(a.im));
  }
}

template <class N>
HWY_INLINE Lanes<typename N::Real> IsZero(N a) {
  return hn::Eq(Magnitude(a), hn::Zero(Tag<typename N::Real>()));
}

template <class N>
HWY_INLINE N Select(Lanes<typename N::Real> mask, N yes, N no) {
  yes.re = hn::IfThenElse(mask, yes.re, no.re);
  if constexpr (N::kParts == 2) yes.im = hn::IfThenElse(mask, yes.im, no.im);
  return yes;
}

template <class N>
HWY_INLINE void SwapWhere(Lanes<typename N::Real> mask, typename N::Real* a, typename N::Real* b) {
  const N x = Get<N>(a), y = Get<N>(b);
  Put(Select(mask, y, x), a);
  Put(Select(mask, x, y), b);
}

// a / b; of complex numbers after R. L. Smith, Algorithm 116 (1962), so that |b|² need not be a number.
template <class N>
HWY_INLINE N Divide(N a, N b) {
  if constexpr (N::kParts == 1) {
    return {hn::Div(a.re, b.re)};
  } else {
    const auto swapped = hn::Lt(hn::Abs(b.re), hn::Abs(b.im));
    const auto large = hn::IfThenElse(swapped, b.im, b.re), small = hn::IfThenElse(swapped, b.re, b.im);
    const auto ratio = hn::Div(small, large);
    const auto denominator = hn::MulAdd(small, ratio, large);
    const auto x = hn::IfThenElse(swapped, a.im, a.re), y = hn::IfThenElse(swapped, a.re, a.im);
    // (x + y·ratio) / d, and (a.im·large - a.re·small) / (large·d) with its sign turned where the parts are swapped.
    const auto re = hn::Div(hn::MulAdd(y, ratio, x), denominator);
    const auto im = hn::Div(hn::NegMulAdd(x, ratio, y), denominator);
    return {re, hn::IfThenElse(swapped, hn::Neg(im), im)};
  }
}

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

// Remembers what each lane failed with first.
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
