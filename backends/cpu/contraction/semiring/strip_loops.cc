#include "backends/cpu/contraction/semiring/strip_loops.h"

#include <algorithm>
#include <array>
#include <cstddef>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/contraction/semiring/strip_loops.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/contraction/semiring/semiring_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The sums of a tile are in registers, a half of them.
constexpr int kSums = HWY_TARGET == HWY_AVX3 ? 16 : 8;
constexpr int kRowsOfDots = 4;
constexpr int kColumnsOfDots = kSums / kRowsOfDots;
constexpr int64_t kAhead = 4;  // terms whose rows are fetched before they are needed

// True if loops only come with care, which costs less than to look for elements that need it.
template <class Elements>
constexpr bool kAlwaysCares = Elements::kHasCare && !Elements::kIsWatched;

// The sums of elements that have gone by on one side, which tell whether they are safe.
template <class Elements, class D, bool kWatches>
struct Watch {
  static constexpr int kCount = 4;  // as a sum takes four cycles, of which every one may begin one
  explicit HWY_INLINE Watch(D d) {
    HWY_UNROLL(4)
    for (auto& sum : sums) sum = hn::Zero(d);
  }
  HWY_INLINE void See(int i, hn::Vec<D> x) { sums[i % kCount] = hn::Add(sums[i % kCount], x); }
  HWY_INLINE bool IsSafe(D d) const {
    return Elements::IsSafe(d, sums[0]) && Elements::IsSafe(d, sums[1]) && Elements::IsSafe(d, sums[2]) &&
           Elements::IsSafe(d, sums[3]);
  }
  hn::Vec<D> sums[kCount];
};
template <class Elements, class D>
struct Watch<Elements, D, false> {
  explicit HWY_INLINE Watch(D) {}
  HWY_INLINE void See(int, hn::Vec<D>) {}
  HWY_INLINE bool IsSafe(D) const { return true; }
};

// Stores a vector of rows.
template <class D, class V, typename T>
HWY_INLINE void StoreRows(D d, V rows, T* to, int64_t step) {
  if (step == 1) return hn::StoreU(rows, d, to);
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(rows, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) to[static_cast<int64_t>(i) * step] = lanes[i];
}

// A tile with lanes along rows: kVectors of rows, kWidth columns. Returns false, and stores nothing, if there is an
// element that needs care.
template <class Elements, bool kCare, int kVectors, int kWidth, typename T>
HWY_INLINE bool RowsTile(const SemiringStrip& s, int64_t row, int64_t column) {
  const hn::ScalableTag<T> d;
  using D = decltype(d);
  using V = hn::Vec<D>;
  constexpr bool kWatches = Elements::kIsWatched && !kCare;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* HWY_RESTRICT a = static_cast<const T*>(s.a) + row;
  const T* HWY_RESTRICT b = static_cast<const T*>(s.b) + column * s.b_column;
  Watch<Elements, D, kWatches> watch_a(d), watch_b(d);
  V sums[kVectors][kWidth];
  HWY_UNROLL(16)
  for (int v = 0; v < kVectors; ++v) {
    HWY_UNROLL(4)
    for (int n = 0; n < kWidth; ++n) sums[v][n] = hn::Set(d, Elements::Zero());
  }
  for (int64_t k = 0; k < s.terms; ++k) {
    decltype(Elements::template MakeFactor<kCare>(hn::Zero(d))) right[kWidth];
    HWY_UNROLL(4)
    for (int n = 0; n < kWidth; ++n) {
      const V x = hn::Set(d, b[n * s.b_column]);
      watch_b.See(n, x);
      right[n] = Elements::template MakeFactor<kCare>(x);
    }
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      const V left = hn::LoadU(d, a + v * lanes);
      if constexpr (kVectors > 1) hwy::Prefetch(a + v * lanes + kAhead * s.a_term);
      watch_a.See(v, left);
      HWY_UNROLL(4)
      for (int n = 0; n < kWidth; ++n) {
        sums[v][n] = Elements::template AddProduct<kCare>(sums[v][n], left, right[n]);
      }
    }
    a += s.a_term;
    b += s.b_term;
  }
  if (!watch_a.IsSafe(d) || !watch_b.IsSafe(d)) return false;
  T* const c = static_cast<T*>(s.c) + row * s.c_row + column * s.c_column;
  HWY_UNROLL(4)
  for (int n = 0; n < kWidth; ++n) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      StoreRows(d, sums[v][n], c + v * lanes * s.c_row + n * s.c_column, s.c_row);
    }
  }
  return true;
}

template <class Elements, int kVectors, int kWidth, typename T>
HWY_INLINE void OneOfRows(const SemiringStrip& s, int64_t row, int64_t column) {
  if (RowsTile<Elements, kAlwaysCares<Elements>, kVectors, kWidth, T>(s, row, column)) return;
  if constexpr (Elements::kIsWatched) RowsTile<Elements, true, kVectors, kWidth, T>(s, row, column);
}

// The rows [row, end) of kWidth columns. The last vector may hold rows that are already done.
template <class Elements, int kWidth, typename T>
void RowsOfColumns(const SemiringStrip& s, int64_t row, int64_t end, int64_t column) {
  constexpr int kMany = kSums / kWidth;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (; row + kMany * lanes <= end; row += kMany * lanes) OneOfRows<Elements, kMany, kWidth, T>(s, row, column);
  if constexpr (kMany > 4) {
    for (; row + 4 * lanes <= end; row += 4 * lanes) OneOfRows<Elements, 4, kWidth, T>(s, row, column);
  }
  for (; row < end; row += lanes) OneOfRows<Elements, 1, kWidth, T>(s, std::min(row, s.rows - lanes), column);
}

template <class Elements, typename T>
void AlongRows(const SemiringStrip& s) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (int64_t row = 0; row < s.rows; row += kSums * lanes) {
    const int64_t end = std::min(s.rows, row + kSums * lanes);
    int64_t column = 0;
    for (; column + 4 <= s.columns; column += 4) RowsOfColumns<Elements, 4, T>(s, row, end, column);
    for (; column + 2 <= s.columns; column += 2) RowsOfColumns<Elements, 2, T>(s, row, end, column);
    if (column < s.columns) RowsOfColumns<Elements, 1, T>(s, row, end, column);
  }
}

// Returns the sum of all lanes.
template <class Elements, class D>
HWY_INLINE hn::TFromD<D> SumOfLanes(D d, hn::Vec<D> x) {
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  return hn::GetLane(x);
#else
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 1) {
    return hn::AllTrue(d, hn::Eq(x, hn::Zero(d))) ? T(0) : T(1);
  } else if constexpr (hn::MaxLanes(d) * sizeof(T) > 16) {
    const hn::Half<D> half;
    return SumOfLanes<Elements>(half, Elements::AddSums(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  } else if constexpr (sizeof(T) == 4) {
    x = Elements::AddSums(x, hn::Shuffle1032(x));
    return hn::GetLane(Elements::AddSums(x, hn::Shuffle2301(x)));
  } else {
    return hn::GetLane(Elements::AddSums(x, hn::Shuffle01(x)));
  }
#endif
}

// A tile with lanes along terms: each sum is of kDeep vectors that go on apart. The last vector may hold terms that
// are already added. Returns false, and stores nothing, if there is an element that needs care.
template <class Elements, bool kCare, int kTall, int kWidth, int kDeep, typename T>
HWY_INLINE bool TermsTile(const SemiringStrip& s, int64_t row, int64_t column) {
  const hn::ScalableTag<T> d;
  using D = decltype(d);
  using V = hn::Vec<D>;
  constexpr bool kWatches = Elements::kIsWatched && !kCare;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* HWY_RESTRICT a = static_cast<const T*>(s.a) + row * s.a_row;
  const T* HWY_RESTRICT b = static_cast<const T*>(s.b) + column * s.b_column;
  Watch<Elements, D, kWatches> watch_a(d), watch_b(d);
  V sums[kDeep][kTall][kWidth];
  HWY_UNROLL(8)
  for (int u = 0; u < kDeep; ++u) {
    HWY_UNROLL(4)
    for (int r = 0; r < kTall; ++r) {
      HWY_UNROLL(4)
      for (int n = 0; n < kWidth; ++n) sums[u][r][n] = hn::Set(d, Elements::Zero());
    }
  }
  const auto add = [&](int u, int64_t k) HWY_ATTR __attribute__((always_inline)) {
    decltype(Elements::template MakeFactor<kCare>(hn::Zero(d))) right[kWidth];
    HWY_UNROLL(4)
    for (int n = 0; n < kWidth; ++n) {
      const V x = hn::LoadU(d, b + n * s.b_column + k);
      watch_b.See(u + n, x);
      right[n] = Elements::template MakeFactor<kCare>(x);
    }
    HWY_UNROLL(4)
    for (int r = 0; r < kTall; ++r) {
      const V left = hn::LoadU(d, a + r * s.a_row + k);
      watch_a.See(u + r, left);
      HWY_UNROLL(4)
      for (int n = 0; n < kWidth; ++n) {
        sums[u][r][n] = Elements::template AddProduct<kCare>(sums[u][r][n], left, right[n]);
      }
    }
  };
  int64_t k = 0;
  for (; k + kDeep * lanes <= s.terms; k += kDeep * lanes) {
    HWY_UNROLL(8)
    for (int u = 0; u < kDeep; ++u) add(u, k + u * lanes);
  }
  for (; k < s.terms; k += lanes) add(0, std::min(k, s.terms - lanes));
  if (!watch_a.IsSafe(d) || !watch_b.IsSafe(d)) return false;
  T* const c = static_cast<T*>(s.c) + row * s.c_row + column * s.c_column;
  for (int r = 0; r < kTall; ++r) {
    for (int n = 0; n < kWidth; ++n) {
      V sum = sums[0][r][n];
      for (int u = 1; u < kDeep; ++u) sum = Elements::AddSums(sum, sums[u][r][n]);
      c[r * s.c_row + n * s.c_column] = SumOfLanes<Elements>(d, sum);
    }
  }
  return true;
}

template <class Elements, int kTall, int kWidth, int kDeep, typename T>
HWY_INLINE void OneOfTerms(const SemiringStrip& s, int64_t row, int64_t column) {
  if (TermsTile<Elements, kAlwaysCares<Elements>, kTall, kWidth, kDeep, T>(s, row, column)) return;
  if constexpr (Elements::kIsWatched) TermsTile<Elements, true, kTall, kWidth, kDeep, T>(s, row, column);
}

template <class Elements, typename T>
void AlongTerms(const SemiringStrip& s) {
  int64_t row = 0;
  for (; row + kRowsOfDots <= s.rows; row += kRowsOfDots) {
    int64_t column = 0;
    for (; column + kColumnsOfDots <= s.columns; column += kColumnsOfDots) {
      OneOfTerms<Elements, kRowsOfDots, kColumnsOfDots, 1, T>(s, row, column);
    }
    for (; column < s.columns; ++column) OneOfTerms<Elements, kRowsOfDots, 1, kColumnsOfDots / 2, T>(s, row, column);
  }
  for (; row < s.rows; ++row) {
    for (int64_t column = 0; column < s.columns; ++column) OneOfTerms<Elements, 1, 1, 8, T>(s, row, column);
  }
}

template <class Elements, typename T>
StripLoops StripsOver() {
  StripLoops loops;
  loops.lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  loops.rows = kSums * loops.lanes;
  loops.along_rows = &AlongRows<Elements, T>;
  loops.along_terms = &AlongTerms<Elements, T>;
  return loops;
}

template <template <typename, Algebra> class Elements, typename T>
StripLoops StripsOf(Algebra algebra) {
  switch (algebra) {
    case Algebra::kMinPlus:
      return StripsOver<Elements<T, Algebra::kMinPlus>, T>();
    case Algebra::kMaxTimes:
      return StripsOver<Elements<T, Algebra::kMaxTimes>, T>();
    default:
      return StripsOver<Elements<T, Algebra::kMaxPlus>, T>();
  }
}

}  // namespace

StripLoops BestStripLoops(Algebra algebra, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return StripsOf<Floats, float>(algebra);
    case DType::kF64:
      return StripsOf<Floats, double>(algebra);
    case DType::kI32:
      return StripsOf<Integers, int32_t>(algebra);
    case DType::kI64:
      return StripsOf<Integers, int64_t>(algebra);
    default:
      return StripsOver<Bits<uint8_t>, uint8_t>();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestStripLoops);

StripLoops GetStripLoops(Algebra algebra, DType dtype) { return HWY_DYNAMIC_DISPATCH(BestStripLoops)(algebra, dtype); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
