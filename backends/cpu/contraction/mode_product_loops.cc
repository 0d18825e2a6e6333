#include "backends/cpu/contraction/mode_product_loops.h"

#include <algorithm>
#include <cstddef>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/contraction/mode_product_loops.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

// Targets with masks and fused multiply-adds.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

// Eight sums at once hide how long a multiply-add takes; of complex numbers four rows have as many in one vector, and
// more have no registers with AVX2.
template <bool kIsComplex>
constexpr int kMostVectors = HWY_TARGET == HWY_AVX3 || !kIsComplex ? 2 : 1;

// Makes kVectors vectors of each of kRows rows. For complex numbers, products with the real and with the imaginary
// parts of the matrix are summed apart and joined at the end, so that no term is shuffled. kIsCut: only the lanes of
// `mask` exist.
template <int kVectors, int kRows, bool kIsComplex, bool kIsCut, class D, typename T = hn::TFromD<D>>
HWY_INLINE void Tile(D d, hn::Mask<D> mask, const ModeProductRuns& p, const T* matrix, const int64_t* row_offsets,
                     const T* x, int64_t x_step, T* y, int64_t y_step) {
  using V = hn::Vec<D>;
  constexpr int64_t kParts = kIsComplex ? 2 : 1;
  V by_real[kRows][kVectors];
  V by_imag[kRows][kVectors];
  HWY_UNROLL(4)
  for (int j = 0; j < kRows; ++j) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) by_real[j][v] = by_imag[j][v] = hn::Zero(d);
  }
  for (int64_t term = 0; term < p.terms; ++term) {
    const T* const from = x + kParts * p.term_offsets[term];
    V values[kVectors];
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      hwy::Prefetch(from + v * x_step + kParts * p.x_ahead);
      values[v] = kIsCut ? hn::MaskedLoad(mask, d, from + v * x_step) : hn::LoadU(d, from + v * x_step);
    }
    HWY_UNROLL(4)
    for (int j = 0; j < kRows; ++j) {
      const V real = hn::Set(d, matrix[kParts * j]);
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) by_real[j][v] = hn::MulAdd(values[v], real, by_real[j][v]);
      if constexpr (kIsComplex) {
        const V imag = hn::Set(d, matrix[2 * j + 1]);
        HWY_UNROLL(2)
        for (int v = 0; v < kVectors; ++v) by_imag[j][v] = hn::MulAdd(values[v], imag, by_imag[j][v]);
      }
    }
    matrix += kParts * kRows;
  }
  HWY_UNROLL(4)
  for (int j = 0; j < kRows; ++j) {
    T* const to = y + kParts * row_offsets[j];
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      V sum = by_real[j][v];
      if constexpr (kIsComplex) {
        const V turned = hn::Reverse2(d, by_imag[j][v]);
        sum = hn::OddEven(hn::Add(sum, turned), hn::Sub(sum, turned));
        if (p.conjugates) sum = hn::OddEven(hn::Neg(sum), sum);
      }
      __builtin_prefetch(to + v * y_step + kParts * p.y_ahead, 1);
      if constexpr (kIsCut) {
        hn::BlendedStore(sum, mask, d, to + v * y_step);
      } else {
        hn::StoreU(sum, d, to + v * y_step);
      }
    }
  }
}

template <int kRows, bool kIsComplex, class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void MultiplyRows(D d, const ModeProductRuns& p, const T* matrix, const int64_t* row_offsets, const T* x,
                               T* y) {
  constexpr int64_t kParts = kIsComplex ? 2 : 1;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int kMost = kMostVectors<kIsComplex>;
  const int64_t length = kParts * p.length;
  const int64_t rest = length % kLanes;
  const auto mask = hn::FirstN(d, static_cast<size_t>(rest));
  // Vectors that follow each other at equal steps: along a run, or from run to run where each is one.
  const bool is_one = length == kLanes;
  const int64_t vectors = is_one ? p.count : length / kLanes;
  const int64_t x_vector = is_one ? kParts * p.x_step : kLanes, y_vector = is_one ? kParts * p.y_step : kLanes;
  for (int64_t run = 0; run < (is_one ? 1 : p.count); ++run) {
    int64_t i = 0;
    for (; i + kMost <= vectors; i += kMost) {
      Tile<kMost, kRows, kIsComplex, false>(d, mask, p, matrix, row_offsets, x + i * x_vector, x_vector,
                                            y + i * y_vector, y_vector);
    }
    for (; i < vectors; ++i) {
      Tile<1, kRows, kIsComplex, false>(d, mask, p, matrix, row_offsets, x + i * x_vector, 0, y + i * y_vector, 0);
    }
    if (rest > 0) {
      Tile<1, kRows, kIsComplex, true>(d, mask, p, matrix, row_offsets, x + i * x_vector, 0, y + i * y_vector, 0);
    }
    x += kParts * p.x_step;
    y += kParts * p.y_step;
  }
}

template <typename T, bool kIsComplex, int kBytes>
void Multiply(const ModeProductRuns& p, const void* x_bytes, void* y_bytes) {
  const hn::CappedTag<T, kBytes / sizeof(T)> d;
  const T* const x = static_cast<const T*>(x_bytes);
  T* const y = static_cast<T*>(y_bytes);
  const T* matrix = static_cast<const T*>(p.matrix);
  for (int64_t row = 0; row < p.rows; row += kModeRows) {
    const int64_t* const row_offsets = p.row_offsets + row;
    switch (std::min(kModeRows, p.rows - row)) {
      case 1:
        MultiplyRows<1, kIsComplex>(d, p, matrix, row_offsets, x, y);
        break;
      case 2:
        MultiplyRows<2, kIsComplex>(d, p, matrix, row_offsets, x, y);
        break;
      case 3:
        MultiplyRows<3, kIsComplex>(d, p, matrix, row_offsets, x, y);
        break;
      default:
        MultiplyRows<4, kIsComplex>(d, p, matrix, row_offsets, x, y);
    }
    matrix += (kIsComplex ? 2 : 1) * kModeRows * p.terms;
  }
}

template <typename T, bool kIsComplex>
ModeProductFunction OfWidth(int64_t run_bytes) {
  if (run_bytes < 32) return Multiply<T, kIsComplex, 16>;
  if (run_bytes < 64) return Multiply<T, kIsComplex, 32>;
  return Multiply<T, kIsComplex, 64>;
}

#else

template <typename T, bool kIsComplex>
ModeProductFunction OfWidth(int64_t) {
  return nullptr;
}

#endif

}  // namespace

ModeProductFunction BestModeProductLoop(DType dtype, int64_t run_bytes) {
  switch (dtype) {
    case DType::kF32:
      return OfWidth<float, false>(run_bytes);
    case DType::kF64:
      return OfWidth<double, false>(run_bytes);
    case DType::kC64:
      return OfWidth<float, true>(run_bytes);
    case DType::kC128:
      return OfWidth<double, true>(run_bytes);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestModeProductLoop);

ModeProductFunction GetModeProductLoop(DType dtype, int64_t run_bytes) {
  return HWY_DYNAMIC_DISPATCH(BestModeProductLoop)(dtype, run_bytes);
}

}  // namespace tensord::cpu
#endif  // HWY_ONCE
