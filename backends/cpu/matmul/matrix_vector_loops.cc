#include "backends/cpu/matmul/matrix_vector_loops.h"

#include <algorithm>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/matrix_vector_loops.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kMaxVectors = 8;  // of y
// A vector stays in registers while rows go by, beside as many sums: a decode step took 1.8 ms so, 2.6 before.
constexpr int kMaxRowVectors = HWY_TARGET == HWY_AVX3 ? 8 : 4;
constexpr int64_t kBytesAhead = 4096;        // of what the processor fetches by itself
constexpr int64_t kColumnsInSequence = 512;  // that one accumulator takes, so that long sums stay accurate

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

template <typename T>
HWY_INLINE hn::Vec<Tag<T>> LoadSome(const T* x, int64_t count) {
  const Tag<T> d;
  if (count == kLanes<T>) return hn::LoadU(d, x);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, x);  // reads nothing beyond them
#else
  alignas(64) T buffer[kLanes<T>] = {};
  std::copy(x, x + count, buffer);
  return hn::Load(d, buffer);
#endif
}

template <typename T>
HWY_INLINE void StoreSome(hn::Vec<Tag<T>> value, int64_t count, bool accumulates, T* y) {
  const Tag<T> d;
  alignas(64) T buffer[kLanes<T>];
  hn::Store(value, d, buffer);
  for (int64_t i = 0; i < count; ++i) y[i] = accumulates ? y[i] + buffer[i] : buffer[i];
}

template <typename T>
HWY_INLINE void FetchAhead(const T* at) {
  hwy::Prefetch(reinterpret_cast<const char*>(at) + kBytesAhead);
}

// `last` elements of the last of kVectors vectors exist.
template <int kVectors, typename T>
HWY_NOINLINE void ByColumns(int64_t last, int64_t k, const T* a, int64_t step, const T* x, T* y, bool accumulates) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  for (int64_t begin = 0; begin < k || begin == 0; begin += kColumnsInSequence) {
    const int64_t end = std::min(k, begin + kColumnsInSequence);
    V sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
    for (int64_t j = begin; j < end; ++j) {
      const T* column = a + j * step;
      for (int v = 0; v < kVectors; ++v) FetchAhead(column + v * kLanes<T>);
      const V factor = hn::Set(d, x[j]);
      for (int v = 0; v + 1 < kVectors; ++v) {
        sums[v] = hn::MulAdd(hn::LoadU(d, column + v * kLanes<T>), factor, sums[v]);
      }
      constexpr int64_t kLast = (kVectors - 1) * kLanes<T>;
      sums[kVectors - 1] = hn::MulAdd(LoadSome(column + kLast, last), factor, sums[kVectors - 1]);
    }
    const bool adds = accumulates || begin > 0;
    for (int v = 0; v < kVectors; ++v) {
      StoreSome(sums[v], v + 1 < kVectors ? kLanes<T> : last, adds, y + v * kLanes<T>);
    }
  }
}

template <typename T>
void MultiplyByColumns(int64_t outputs, int64_t k, const void* a, int64_t step, const void* x, void* y,
                       bool accumulates) {
  using Function = void (*)(int64_t, int64_t, const T*, int64_t, const T*, T*, bool);
  static constexpr Function kFunctions[kMaxVectors] = {ByColumns<1, T>, ByColumns<2, T>, ByColumns<3, T>,
                                                       ByColumns<4, T>, ByColumns<5, T>, ByColumns<6, T>,
                                                       ByColumns<7, T>, ByColumns<8, T>};
  const int64_t vectors = (outputs + kLanes<T> - 1) / kLanes<T>;
  kFunctions[vectors - 1](outputs - (vectors - 1) * kLanes<T>, k, static_cast<const T*>(a), step,
                          static_cast<const T*>(x), static_cast<T*>(y), accumulates);
}

// The products of one row with x, summed lane by lane.
template <typename T>
HWY_INLINE hn::Vec<Tag<T>> RowProducts(const T* row, const T* x, int64_t k) {
  const Tag<T> d;
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  constexpr int64_t kWidth = kLanes<T>;
  int64_t i = 0;
  for (; i + 4 * kWidth <= k; i += 4 * kWidth) {
    sum0 = hn::MulAdd(hn::LoadU(d, row + i), hn::LoadU(d, x + i), sum0);
    sum1 = hn::MulAdd(hn::LoadU(d, row + i + kWidth), hn::LoadU(d, x + i + kWidth), sum1);
    sum2 = hn::MulAdd(hn::LoadU(d, row + i + 2 * kWidth), hn::LoadU(d, x + i + 2 * kWidth), sum2);
    sum3 = hn::MulAdd(hn::LoadU(d, row + i + 3 * kWidth), hn::LoadU(d, x + i + 3 * kWidth), sum3);
  }
  for (; i + kWidth <= k; i += kWidth) sum0 = hn::MulAdd(hn::LoadU(d, row + i), hn::LoadU(d, x + i), sum0);
  if (i < k) sum1 = hn::MulAdd(LoadSome(row + i, k - i), LoadSome(x + i, k - i), sum1);
  return hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
}

// Folds kCount rows from `first` on: neighbouring lanes are added until each row is one lane.
template <int kCount, typename T, typename RowAt>
HWY_INLINE hn::Vec<Tag<T>> FoldRows(int first, const RowAt& row_at) {
  if constexpr (kCount == 1) {
    return row_at(first);
  } else {
    const Tag<T> d;
    const auto low = FoldRows<kCount / 2, T>(first, row_at);
    const auto high = FoldRows<kCount / 2, T>(first + kCount / 2, row_at);
    return hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  }
}

// Calls for rows in groups of as many as a vector has lanes. Missing rows are read as the last one, and not stored.
template <typename T, typename Products>
HWY_INLINE void ByRows(int64_t outputs, const T* a, int64_t step, T* y, bool accumulates, const Products& products) {
  constexpr int kRows = static_cast<int>(kLanes<T>);
  for (int64_t i = 0; i < outputs; i += kRows) {
    const int64_t rows = std::min<int64_t>(kRows, outputs - i);
    const T* const first = a + i * step;
    if (rows == kRows) {
      const auto row_at = [&](int row) HWY_ATTR { return products(first + row * step); };
      StoreSome(FoldRows<kRows, T>(0, row_at), rows, accumulates, y + i);
    } else {
      const auto row_at = [&](int row) HWY_ATTR { return products(first + std::min<int64_t>(row, rows - 1) * step); };
      StoreSome(FoldRows<kRows, T>(0, row_at), rows, accumulates, y + i);
    }
  }
}

// x in registers; `last` elements of its last vector exist.
template <int kVectors, typename T>
HWY_NOINLINE void ByShortRows(int64_t outputs, int64_t last, const T* a, int64_t step, const T* x, T* y,
                              bool accumulates) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr int64_t kWidth = kLanes<T>;
  V factors[kVectors];
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v)
    factors[v] = v + 1 < kVectors ? hn::LoadU(d, x + v * kWidth) : LoadSome(x + v * kWidth, last);
  ByRows(outputs, a, step, y, accumulates, [&](const T* row) HWY_ATTR {
    V even = hn::Zero(d), odd = hn::Zero(d);
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const T* const at = row + v * kWidth;
      FetchAhead(at);
      V& sum = v % 2 == 0 ? even : odd;
      sum = hn::MulAdd(v + 1 < kVectors ? hn::LoadU(d, at) : LoadSome(at, last), factors[v], sum);
    }
    return hn::Add(even, odd);
  });
}

template <typename T>
void MultiplyByRows(int64_t outputs, int64_t k, const void* a_bytes, int64_t step, const void* x_bytes, void* y_bytes,
                    bool accumulates) {
  const T* a = static_cast<const T*>(a_bytes);
  const T* x = static_cast<const T*>(x_bytes);
  T* y = static_cast<T*>(y_bytes);
  const int64_t vectors = (k + kLanes<T> - 1) / kLanes<T>;
  if (vectors > 0 && vectors <= kMaxRowVectors) {
    using Function = void (*)(int64_t, int64_t, const T*, int64_t, const T*, T*, bool);
    static constexpr Function kFunctions[8] = {ByShortRows<1, T>, ByShortRows<2, T>, ByShortRows<3, T>,
                                               ByShortRows<4, T>, ByShortRows<5, T>, ByShortRows<6, T>,
                                               ByShortRows<7, T>, ByShortRows<8, T>};
    return kFunctions[vectors - 1](outputs, k - (vectors - 1) * kLanes<T>, a, step, x, y, accumulates);
  }
  ByRows(outputs, a, step, y, accumulates, [&](const T* row) HWY_ATTR { return RowProducts(row, x, k); });
}

template <typename T>
constexpr MatrixVectorLoops Loops() {
  return {MultiplyByColumns<T>, kMaxVectors * kLanes<T>, MultiplyByRows<T>};
}

#else

template <typename T>
constexpr MatrixVectorLoops Loops() {
  return {};
}

#endif

}  // namespace

MatrixVectorLoops BestMatrixVectorLoops(DType dtype) {
  if (dtype == DType::kF32) return Loops<float>();
  return dtype == DType::kF64 ? Loops<double>() : MatrixVectorLoops();
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestMatrixVectorLoops);

MatrixVectorLoops GetMatrixVectorLoops(DType dtype) { return HWY_DYNAMIC_DISPATCH(BestMatrixVectorLoops)(dtype); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
