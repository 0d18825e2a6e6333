#include "backends/cpu/contraction/semiring/semiring_loops.h"

#include <cstddef>
#include <limits>
#include <type_traits>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/contraction/semiring/semiring_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of rows and columns of a tile, whose sums are in registers: with the operands they leave none of 32, or of
// 16, unused. Tiles of a product of 256 in F32 make 37e9 products a second (docs/why/0085).
constexpr int kWide = HWY_TARGET == HWY_AVX3 ? 4 : 2;
constexpr int kColumns = 6;  // as above

// Elements that a scan finds.
constexpr uint32_t kHasNaN = 1;
constexpr uint32_t kHasFirst = 2;   // +infinity; an infinity in max_times
constexpr uint32_t kHasSecond = 4;  // -infinity; a zero in max_times
constexpr uint32_t kHasZero = 8;    // the zero of integers
constexpr uint32_t kHasFar = 16;    // integers whose sums may not be told from sums with a stand-in

constexpr bool IsMinimum(Algebra algebra) { return algebra == Algebra::kMinPlus; }

// Floats. Vectors' own maximum does not keep NaN, so fast loops take operands whose products are none.
template <typename T, Algebra kAlgebra>
struct Floats {
  static constexpr bool kHasCare = true;
  static T Zero() {
    if (kAlgebra == Algebra::kMaxTimes) return T(0);
    const T infinity = std::numeric_limits<T>::infinity();
    return IsMinimum(kAlgebra) ? infinity : -infinity;
  }

  template <bool kCare, class V>
  static HWY_INLINE V Multiply(V a, V b) {
    if constexpr (kAlgebra == Algebra::kMaxTimes) return hn::Mul(a, b);
    return hn::Add(a, b);
  }
  template <bool kCare, class V>
  static HWY_INLINE V Add(V sum, V product) {
    if constexpr (!kCare) return IsMinimum(kAlgebra) ? hn::Min(sum, product) : hn::Max(sum, product);
    // A product that is NaN is not beyond the sum, and so it is taken.
    const auto stays = IsMinimum(kAlgebra) ? hn::Le(sum, product) : hn::Ge(sum, product);
    return hn::IfThenElse(hn::Or(stays, hn::IsNaN(sum)), sum, product);
  }
  template <class V>
  static HWY_INLINE V Finished(V sum) {
    return sum;
  }

  template <class D, class V>
  static HWY_INLINE uint32_t Scan(D d, V x, hn::Mask<D> exists) {
    const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
    const bool times = kAlgebra == Algebra::kMaxTimes;
    const auto first = times ? hn::Eq(hn::Abs(x), infinity) : hn::Eq(x, infinity);
    const auto second = times ? hn::Eq(x, hn::Zero(d)) : hn::Eq(x, hn::Neg(infinity));
    const auto has = [&](hn::Mask<D> mask) { return !hn::AllFalse(d, hn::And(mask, exists)); };
    if (!has(hn::Or(hn::IsNaN(x), hn::Or(first, second)))) return 0;
    return (has(hn::IsNaN(x)) ? kHasNaN : 0u) | (has(first) ? kHasFirst : 0u) | (has(second) ? kHasSecond : 0u);
  }
  static bool NeedsCare(uint32_t a, uint32_t b) {
    const bool meet =
        ((a & kHasFirst) != 0 && (b & kHasSecond) != 0) || ((a & kHasSecond) != 0 && (b & kHasFirst) != 0);
    return meet || ((a | b) & kHasNaN) != 0;
  }
  static bool NeedsStandIn(uint32_t, uint32_t) { return false; }
  template <class D, class V>
  static HWY_INLINE V WithStandIn(D, V x) {
    return x;
  }
};

// Integers. If all numbers are below an eighth of the greatest one, no sum of two wraps around, and a stand-in of half
// the least one for the zero keeps sums with it apart from all others.
template <typename T, Algebra kAlgebra>
struct Integers {
  static constexpr bool kHasCare = kAlgebra != Algebra::kMaxTimes;
  static constexpr T kLeast = std::numeric_limits<T>::min(), kGreatest = std::numeric_limits<T>::max();
  static constexpr T kFar = kGreatest / 8;
  static T Zero() {
    if (kAlgebra == Algebra::kMaxTimes) return T(0);
    return IsMinimum(kAlgebra) ? kGreatest : kLeast;
  }

  template <bool kCare, class V>
  static HWY_INLINE V Multiply(V a, V b) {
    if constexpr (kAlgebra == Algebra::kMaxTimes) return hn::Mul(a, b);
    const V sum = hn::Add(a, b);
    if constexpr (!kCare) return sum;
    const hn::DFromV<V> d;
    const V zero = hn::Set(d, Zero());
    const auto wraps = hn::Lt(hn::And(hn::Xor(a, sum), hn::Xor(b, sum)), hn::Zero(d));
    const V end = hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Set(d, kLeast), hn::Set(d, kGreatest));
    const auto absorbs = hn::Or(hn::Eq(a, zero), hn::Eq(b, zero));
    return hn::IfThenElse(absorbs, zero, hn::IfThenElse(wraps, end, sum));
  }
  template <bool kCare, class V>
  static HWY_INLINE V Add(V sum, V product) {
    return IsMinimum(kAlgebra) ? hn::Min(sum, product) : hn::Max(sum, product);
  }
  // Sums of products with the stand-in alone are the zero.
  template <class V>
  static HWY_INLINE V Finished(V sum) {
    if constexpr (kAlgebra == Algebra::kMaxTimes) return sum;
    const hn::DFromV<V> d;
    const auto absorbed =
        IsMinimum(kAlgebra) ? hn::Gt(sum, hn::Set(d, T(2 * kFar))) : hn::Lt(sum, hn::Set(d, T(-2 * kFar)));
    return hn::IfThenElse(absorbed, hn::Set(d, Zero()), sum);
  }

  template <class D, class V>
  static HWY_INLINE uint32_t Scan(D d, V x, hn::Mask<D> exists) {
    if constexpr (kAlgebra == Algebra::kMaxTimes) return 0;
    const auto zero = hn::Eq(x, hn::Set(d, Zero()));
    const auto far = hn::Or(hn::Lt(x, hn::Set(d, T(-kFar))), hn::Gt(x, hn::Set(d, kFar)));
    if (hn::AllFalse(d, hn::And(far, exists))) return 0;
    return (hn::AllFalse(d, hn::And(zero, exists)) ? 0u : kHasZero) |
           (hn::AllFalse(d, hn::And(hn::AndNot(zero, far), exists)) ? 0u : kHasFar);
  }
  static bool NeedsCare(uint32_t a, uint32_t b) { return ((a | b) & kHasFar) != 0; }
  static bool NeedsStandIn(uint32_t a, uint32_t b) { return ((a | b) & kHasZero) != 0; }
  template <class D, class V>
  static HWY_INLINE V WithStandIn(D d, V x) {
    const T stand_in = IsMinimum(kAlgebra) ? T(kGreatest / 2) : T(kLeast / 2);
    return hn::IfThenElse(hn::Eq(x, hn::Set(d, Zero())), hn::Set(d, stand_in), x);
  }
};

// Words of 64 rows.
struct Bits {
  static constexpr bool kHasCare = false;
  static uint64_t Zero() { return 0; }
  template <class V>
  static HWY_INLINE V Finished(V sum) {
    return sum;
  }
};

// The next sum.
template <class Elements, bool kCare, class V>
HWY_INLINE V AddProduct(V sum, V a, V b) {
  if constexpr (std::is_same_v<Elements, Bits>) {
    return hn::OrAnd(sum, a, b);
  } else {
    return Elements::template Add<kCare>(sum, Elements::template Multiply<kCare>(a, b));
  }
}

// Adds sums of some terms to those of others, in which NaN may be.
template <class Elements, class V>
HWY_INLINE V AddSums(V x, V y) {
  if constexpr (std::is_same_v<Elements, Bits>) {
    return hn::Or(x, y);
  } else {
    return Elements::template Add</*kCare=*/true>(x, y);
  }
}

// A tile: kVectors of rows, kWidth columns.
template <class Elements, bool kCare, int kVectors, int kWidth, typename T>
HWY_INLINE void Tile(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, int64_t terms, T* HWY_RESTRICT c,
                     int64_t c_step) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kVectors][kWidth];
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    HWY_UNROLL(8)
    for (int n = 0; n < kWidth; ++n) sums[v][n] = hn::Set(d, Elements::Zero());
  }
  for (int64_t k = 0; k < terms; ++k) {
    V left[kVectors];
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) left[v] = hn::LoadU(d, a + v * lanes);
    HWY_UNROLL(8)
    for (int n = 0; n < kWidth; ++n) {
      const V right = hn::Set(d, b[n * terms + k]);
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) sums[v][n] = AddProduct<Elements, kCare>(sums[v][n], left[v], right);
    }
    a += kVectors * lanes;
  }
  HWY_UNROLL(8)
  for (int n = 0; n < kWidth; ++n) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      T* const to = c + n * c_step + v * lanes;
      const V sum = kCare ? sums[v][n] : Elements::Finished(sums[v][n]);
      hn::StoreU(AddSums<Elements>(hn::LoadU(d, to), sum), d, to);
    }
  }
}

template <class Elements, bool kCare, int kWidth, typename T>
void Columns(const SemiringBlock& block, int64_t column) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const T* const b = static_cast<const T*>(block.b) + column * block.terms;
  T* const c = static_cast<T*>(block.c) + column * block.c_step;
  const T* a = static_cast<const T*>(block.a);
  int64_t row = 0;
  for (; row + kWide * lanes <= block.rows; row += kWide * lanes) {
    Tile<Elements, kCare, kWide, kWidth>(a, b, block.terms, c + row, block.c_step);
    a += kWide * lanes * block.terms;
  }
  for (; row < block.rows; row += lanes) {
    Tile<Elements, kCare, 1, kWidth>(a, b, block.terms, c + row, block.c_step);
    a += lanes * block.terms;
  }
}

template <class Elements, bool kCare, typename T>
void Multiply(const SemiringBlock& block) {
  int64_t column = 0;
  for (; column + kColumns <= block.columns; column += kColumns) {
    Columns<Elements, kCare, kColumns, T>(block, column);
  }
  for (; column < block.columns; ++column) Columns<Elements, kCare, 1, T>(block, column);
}

template <class Elements, typename T>
uint32_t Scan(const void* elements, int64_t count) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* const x = static_cast<const T*>(elements);
  uint32_t bits = 0;
  int64_t i = 0;
  const auto all = hn::FirstN(d, static_cast<size_t>(lanes));
  for (; i + lanes <= count; i += lanes) bits |= Elements::Scan(d, hn::LoadU(d, x + i), all);
  if (i == count) return bits;
  const auto rest = hn::FirstN(d, static_cast<size_t>(count - i));
  return bits | Elements::Scan(d, hn::MaskedLoad(rest, d, x + i), rest);
}

template <class Elements, typename T>
void PutStandIn(void* elements, int64_t count) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  T* const x = static_cast<T*>(elements);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(Elements::WithStandIn(d, hn::LoadU(d, x + i)), d, x + i);
  if (i == count) return;
  const auto rest = hn::FirstN(d, static_cast<size_t>(count - i));
  hn::BlendedStore(Elements::WithStandIn(d, hn::MaskedLoad(rest, d, x + i)), rest, d, x + i);
}

template <class Elements, typename T>
SemiringLoops LoopsOver() {
  SemiringLoops loops;
  loops.narrow = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  loops.wide = kWide * loops.narrow;
  loops.multiply = &Multiply<Elements, false, T>;
  if constexpr (Elements::kHasCare) {
    loops.multiply_with_care = &Multiply<Elements, true, T>;
    loops.scan = &Scan<Elements, T>;
    loops.needs_care = &Elements::NeedsCare;
    loops.needs_stand_in = &Elements::NeedsStandIn;
    loops.put_stand_in = &PutStandIn<Elements, T>;
  }
  return loops;
}

template <template <typename, Algebra> class Elements, typename T>
SemiringLoops LoopsOf(Algebra algebra) {
  switch (algebra) {
    case Algebra::kMinPlus:
      return LoopsOver<Elements<T, Algebra::kMinPlus>, T>();
    case Algebra::kMaxTimes:
      return LoopsOver<Elements<T, Algebra::kMaxTimes>, T>();
    default:
      return LoopsOver<Elements<T, Algebra::kMaxPlus>, T>();
  }
}

}  // namespace

SemiringLoops BestSemiringLoops(Algebra algebra, DType packed) {
  switch (packed) {
    case DType::kF32:
      return LoopsOf<Floats, float>(algebra);
    case DType::kF64:
      return LoopsOf<Floats, double>(algebra);
    case DType::kI32:
      return LoopsOf<Integers, int32_t>(algebra);
    case DType::kI64:
      return LoopsOf<Integers, int64_t>(algebra);
    default:
      return LoopsOver<Bits, uint64_t>();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestSemiringLoops);

SemiringLoops GetSemiringLoops(Algebra algebra, DType packed) {
  return HWY_DYNAMIC_DISPATCH(BestSemiringLoops)(algebra, packed);
}

}  // namespace tensord::cpu
#endif  // HWY_ONCE
