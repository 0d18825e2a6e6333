#include "backends/cpu/contraction/semiring/semiring_loops.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/contraction/semiring/semiring_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/contraction/semiring/semiring_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of rows and columns of a tile, whose sums are in registers: with the operands they leave none of 32, or of
// 16, unused. Tiles of a product of 256 in F32 make 37e9 products a second (docs/why/0085).
constexpr int kWide = HWY_TARGET == HWY_AVX3 ? 4 : 2;
constexpr int kColumns = 6;  // as above

// Ends the work on a vector here: else g++ makes all products of a term first, and their sums go through memory.
template <class V>
HWY_INLINE void Settle(V& vector) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && HWY_TARGET != HWY_SCALAR
  asm volatile("" : "+v"(vector.raw));
#else
  (void)vector;
#endif
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
      V factor = hn::Set(d, b[n * terms + k]);
      Settle(factor);
      const auto right = Elements::template MakeFactor<kCare>(factor);
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) {
        sums[v][n] = Elements::template AddProduct<kCare>(sums[v][n], left[v], right);
        Settle(sums[v][n]);
      }
    }
    a += kVectors * lanes;
  }
  HWY_UNROLL(8)
  for (int n = 0; n < kWidth; ++n) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      T* const to = c + n * c_step + v * lanes;
      const V sum = kCare ? sums[v][n] : Elements::Finished(sums[v][n]);
      hn::StoreU(Elements::AddSums(hn::LoadU(d, to), sum), d, to);
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
  if constexpr (kWide > 2) {
    for (; row + 2 * lanes <= block.rows; row += 2 * lanes) {
      Tile<Elements, kCare, 2, kWidth>(a, b, block.terms, c + row, block.c_step);
      a += 2 * lanes * block.terms;
    }
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

// Returns the last elements as a vector, filled up with 1, which is no matter to a scan.
template <typename T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> LastOf(const T* elements, int64_t count) {
  std::array<T, HWY_MAX_BYTES / sizeof(T)> last;
  last.fill(T(1));
  std::copy_n(elements, count, last.begin());
  return hn::LoadU(hn::ScalableTag<T>(), last.data());
}

// Tells whether floats make no NaN whatever finite ones and second infinities they are multiplied by.
template <class Elements, typename T>
bool AreSafe(const T* x, int64_t count) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, x + i));
    b = hn::Add(b, hn::LoadU(d, x + i + lanes));
    c = hn::Add(c, hn::LoadU(d, x + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i < count; i += lanes) a = hn::Add(a, LastOf(x + i, std::min(lanes, count - i)));
  return Elements::IsSafe(d, a) && Elements::IsSafe(d, b) && Elements::IsSafe(d, c) && Elements::IsSafe(d, e);
}

template <class Elements, typename T>
uint32_t Scan(const void* elements, int64_t count) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* const x = static_cast<const T*>(elements);
  if constexpr (Elements::kIsWatched) {
    if (AreSafe<Elements>(x, count)) return kHasSecond;
  }
  uint32_t bits = 0;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) bits |= Elements::Scan(d, hn::LoadU(d, x + i));
  return i == count ? bits : bits | Elements::Scan(d, LastOf(x + i, count - i));
}

template <class Elements, typename T>
void PutStandIn(void* elements, int64_t count) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  T* const x = static_cast<T*>(elements);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(Elements::WithStandIn(d, hn::LoadU(d, x + i)), d, x + i);
  if (i == count) return;
  std::array<T, HWY_MAX_BYTES / sizeof(T)> last;
  hn::StoreU(Elements::WithStandIn(d, LastOf(x + i, count - i)), d, last.data());
  std::copy_n(last.begin(), count - i, x + i);
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
      return LoopsOver<Bits<uint64_t>, uint64_t>();
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
