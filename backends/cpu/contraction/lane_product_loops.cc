#include "backends/cpu/contraction/lane_product_loops.h"

#include <cstddef>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/contraction/lane_product_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

// Targets with masks and fused multiply-adds.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kSide = 3;  // rows and columns whose sums are in registers

// kIsCut: only the lanes of `mask` exist.
template <int kRows, int kColumns, bool kIsCut, class D, typename T = hn::TFromD<D>>
HWY_INLINE void Tile(D d, hn::Mask<D> mask, const LaneProducts& p, const T* a, const T* b, T* c) {
  using V = hn::Vec<D>;
  V sums[kRows][kColumns];
  HWY_UNROLL(3)
  for (int row = 0; row < kRows; ++row) {
    HWY_UNROLL(3)
    for (int column = 0; column < kColumns; ++column) sums[row][column] = hn::Zero(d);
  }
  for (int64_t term = 0; term < p.terms; ++term) {
    V left[kRows];
    HWY_UNROLL(3)
    for (int row = 0; row < kRows; ++row) {
      left[row] = kIsCut ? hn::MaskedLoad(mask, d, a + row * p.step) : hn::LoadU(d, a + row * p.step);
    }
    HWY_UNROLL(3)
    for (int column = 0; column < kColumns; ++column) {
      const V right = kIsCut ? hn::MaskedLoad(mask, d, b + column * p.step) : hn::LoadU(d, b + column * p.step);
      HWY_UNROLL(3)
      for (int row = 0; row < kRows; ++row) sums[row][column] = hn::MulAdd(left[row], right, sums[row][column]);
    }
    a += p.rows * p.step;
    b += p.columns * p.step;
  }
  HWY_UNROLL(3)
  for (int column = 0; column < kColumns; ++column) {
    HWY_UNROLL(3)
    for (int row = 0; row < kRows; ++row) {
      T* const to = c + (column * p.rows + row) * p.length;
      if constexpr (kIsCut) {
        hn::BlendedStore(sums[row][column], mask, d, to);
      } else {
        hn::StoreU(sums[row][column], d, to);
      }
    }
  }
}

template <int kRows, int kColumns, typename T>
void AllMatrices(const LaneProducts& p, const T* a, const T* b, T* c) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= p.length; i += lanes) Tile<kRows, kColumns, false>(d, hn::FirstN(d, 0), p, a + i, b + i, c + i);
  if (i == p.length) return;
  Tile<kRows, kColumns, true>(d, hn::FirstN(d, static_cast<size_t>(p.length - i)), p, a + i, b + i, c + i);
}

template <int kRows, typename T>
void OfRows(int64_t columns, const LaneProducts& p, const T* a, const T* b, T* c) {
  switch (columns) {
    case 1:
      return AllMatrices<kRows, 1>(p, a, b, c);
    case 2:
      return AllMatrices<kRows, 2>(p, a, b, c);
    default:
      return AllMatrices<kRows, kSide>(p, a, b, c);
  }
}

template <typename T>
void Multiply(const LaneProducts& p) {
  for (int64_t column = 0; column < p.columns; column += kSide) {
    const T* const b = static_cast<const T*>(p.b) + column * p.step;
    for (int64_t row = 0; row < p.rows; row += kSide) {
      const T* const a = static_cast<const T*>(p.a) + row * p.step;
      T* const c = static_cast<T*>(p.c) + (column * p.rows + row) * p.length;
      switch (p.rows - row) {
        case 1:
          OfRows<1>(p.columns - column, p, a, b, c);
          break;
        case 2:
          OfRows<2>(p.columns - column, p, a, b, c);
          break;
        default:
          OfRows<kSide>(p.columns - column, p, a, b, c);
      }
    }
  }
}

template <typename T>
LaneProductFunction LoopOf() {
  return Multiply<T>;
}

#else

template <typename T>
LaneProductFunction LoopOf() {
  return nullptr;
}

#endif

}  // namespace

LaneProductFunction BestLaneProductLoop(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return LoopOf<float>();
    case DType::kF64:
      return LoopOf<double>();
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestLaneProductLoop);

LaneProductFunction GetLaneProductLoop(DType dtype) { return HWY_DYNAMIC_DISPATCH(BestLaneProductLoop)(dtype); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
