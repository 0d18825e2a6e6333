#include "backends/cpu/linalg/large/panel_factor_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linalg/large/panel_factor_loops.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::CappedTag<T, 16>;

// The first of the numbers that are largest, without their signs, among the numbers it was shown: vectors in rising
// order of their places, then single ones.
template <typename T>
class LargestPlace {
 public:
  using V = hn::Vec<Tag<T>>;
  using Index = hn::RebindToSigned<Tag<T>>;

  HWY_INLINE explicit LargestPlace(int64_t first)
      : largest_(hn::Set(Tag<T>(), T(-1))),
        place_(hn::Set(Index(), static_cast<hn::TFromD<Index>>(first))),
        next_(hn::Iota(Index(), static_cast<hn::TFromD<Index>>(first))),
        single_place_(first) {}

  HWY_INLINE void See(V x) {
    const V size = hn::Abs(x);
    const auto larger = hn::Gt(size, largest_);
    largest_ = hn::IfThenElse(larger, size, largest_);
    place_ = hn::IfThenElse(hn::RebindMask(Index(), larger), next_, place_);
    next_ = hn::Add(next_, hn::Set(Index(), static_cast<hn::TFromD<Index>>(hn::Lanes(Tag<T>()))));
  }
  HWY_INLINE void SeeOne(T x, int64_t place) {
    if (!(std::abs(x) > single_)) return;
    single_ = std::abs(x);
    single_place_ = place;
  }

  // NaN is never larger.
  HWY_INLINE int64_t Find() const {
    const Tag<T> d;
    alignas(64) T sizes[16];
    alignas(64) hn::TFromD<Index> places[16];
    hn::Store(largest_, d, sizes);
    hn::Store(place_, Index(), places);
    T size = single_;
    int64_t place = single_place_;
    for (size_t i = 0; i < hn::Lanes(d); ++i) {
      const int64_t other = static_cast<int64_t>(places[i]);
      if (sizes[i] < size || (sizes[i] == size && other > place)) continue;
      size = sizes[i];
      place = other;
    }
    return place;
  }

 private:
  V largest_;
  hn::Vec<Index> place_, next_;
  T single_ = -1;
  int64_t single_place_;
};

// Divides the part of column j below the diagonal by its diagonal entry, takes the products with row j from the kRest
// columns that follow, and finds the next pivot.
template <int kRest, typename T>
HWY_NOINLINE int64_t Eliminate(int64_t m, int64_t j, T* HWY_RESTRICT a, int64_t leading) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  T* const column = a + j * leading;
  const T pivot = column[j];
  // As in LAPACK: multiplies by the reciprocal if it is a number.
  const bool inverts = std::abs(pivot) >= std::numeric_limits<T>::min();
  const T inverse = pivot == T(0) ? T(1) : inverts ? T(1) / pivot : T(1);
  if (!inverts && pivot != T(0)) {
    for (int64_t i = j + 1; i < m; ++i) column[i] /= pivot;
  }
  V row[kRest == 0 ? 1 : kRest];
  for (int c = 0; c < kRest; ++c) row[c] = hn::Set(d, column[(c + 1) * leading + j]);
  const V by = hn::Set(d, inverse);
  LargestPlace<T> largest(j + 1);
  int64_t i = j + 1;
  for (; i + lanes <= m; i += lanes) {
    T* const at = column + i;
    const V factor = hn::Mul(hn::LoadU(d, at), by);
    hn::StoreU(factor, d, at);
    HWY_UNROLL(8)
    for (int c = 0; c < kRest; ++c) {
      T* const other = at + (c + 1) * leading;
      const V rest = hn::NegMulAdd(factor, row[c], hn::LoadU(d, other));
      hn::StoreU(rest, d, other);
      if (c == 0) largest.See(rest);
    }
  }
  for (; i < m; ++i) {
    const T factor = column[i] *= inverse;
    for (int c = 0; c < kRest; ++c) {
      T& rest = column[(c + 1) * leading + i];
      rest = std::fma(-factor, hn::GetLane(row[c]), rest);
      if (c == 0) largest.SeeOne(rest, i);
    }
  }
  return kRest == 0 ? 0 : largest.Find();
}

template <typename T>
int64_t EliminateColumn(int64_t rest, int64_t m, int64_t j, T* a, int64_t leading) {
  switch (rest) {
    case 0:
      return Eliminate<0>(m, j, a, leading);
    case 1:
      return Eliminate<1>(m, j, a, leading);
    case 2:
      return Eliminate<2>(m, j, a, leading);
    case 3:
      return Eliminate<3>(m, j, a, leading);
    case 4:
      return Eliminate<4>(m, j, a, leading);
    case 5:
      return Eliminate<5>(m, j, a, leading);
    case 6:
      return Eliminate<6>(m, j, a, leading);
    default:
      static_assert(kLuNarrowColumns == 8);
      return Eliminate<7>(m, j, a, leading);
  }
}

template <typename T>
void FactorNarrow(int64_t m, int64_t columns, T* a, int64_t leading, int64_t* rows) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  LargestPlace<T> largest(0);
  int64_t i = 0;
  for (; i + lanes <= m; i += lanes) largest.See(hn::LoadU(d, a + i));
  for (; i < m; ++i) largest.SeeOne(a[i], i);
  int64_t pivot = largest.Find();
  for (int64_t j = 0; j < columns; ++j) {
    rows[j] = pivot;
    if (pivot != j) {
      for (int64_t c = 0; c < columns; ++c) std::swap(a[c * leading + j], a[c * leading + pivot]);
    }
    pivot = EliminateColumn(columns - 1 - j, m, j, a, leading);
  }
}

// Solves for kRows rows of X, kVectors vectors of each; the rows before are there.
template <int kRows, int kVectors, typename T>
HWY_INLINE void SolveRows(int64_t n, int64_t first, const T* HWY_RESTRICT l, const T* inverses, int64_t width,
                          T* HWY_RESTRICT b) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kRows][kVectors];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::LoadU(d, b + (first + r) * width + v * lanes);
  }
  const T* const l_row = l + first * n;
  for (int64_t k = 0; k < first; ++k) {
    V x[kVectors];
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, b + k * width + v * lanes);
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      const V factor = hn::Set(d, l_row[r * n + k]);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::NegMulAdd(factor, x[v], sums[r][v]);
    }
  }
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    for (int s = 0; s < r; ++s) {
      const V factor = hn::Set(d, l_row[r * n + first + s]);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::NegMulAdd(factor, sums[s][v], sums[r][v]);
    }
    if (inverses != nullptr) {
      const V inverse = hn::Set(d, inverses[first + r]);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Mul(sums[r][v], inverse);
    }
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, b + (first + r) * width + v * lanes);
  }
}

template <int kVectors, typename T>
void SolveColumns(int64_t n, const T* l, const T* inverses, int64_t width, T* b) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) SolveRows<4, kVectors>(n, i, l, inverses, width, b);
  for (; i < n; ++i) SolveRows<1, kVectors>(n, i, l, inverses, width, b);
}

template <typename T>
void SolveLower(int64_t n, const T* l, const T* inverses, int64_t width, T* b) {
  // Four rows of so many vectors: 16 sums of AVX-512's 32 registers, 8 of AVX2's 16.
  constexpr int kVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<T>()));
  int64_t at = 0;
  for (; at + kVectors * lanes <= width; at += kVectors * lanes) SolveColumns<kVectors>(n, l, inverses, width, b + at);
  for (; at < width; at += lanes) SolveColumns<1>(n, l, inverses, width, b + at);
}

}  // namespace

FactorizationLoops<float> BestFactorizationLoopsF32() { return {FactorNarrow<float>, SolveLower<float>}; }
FactorizationLoops<double> BestFactorizationLoopsF64() { return {FactorNarrow<double>, SolveLower<double>}; }

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestFactorizationLoopsF32);
HWY_EXPORT(BestFactorizationLoopsF64);

template <>
FactorizationLoops<float> GetFactorizationLoops<float>() {
  return HWY_DYNAMIC_DISPATCH(BestFactorizationLoopsF32)();
}
template <>
FactorizationLoops<double> GetFactorizationLoops<double>() {
  return HWY_DYNAMIC_DISPATCH(BestFactorizationLoopsF64)();
}

}  // namespace tensord::cpu
#endif  // HWY_ONCE
