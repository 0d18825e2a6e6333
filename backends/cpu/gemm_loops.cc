#include "backends/cpu/gemm_loops.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/complex_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int kVectorBytes = HWY_ARCH_X86 && HWY_LANES(uint8_t) > 16 ? HWY_LANES(uint8_t) : 16;

// std::complex has operators that check for infinities; the contract's product is the plain one.
template <typename Real>
struct Pair {
  using Part = Real;
  Real re, im;
  friend HWY_INLINE Pair operator*(Pair a, Pair b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  friend HWY_INLINE Pair operator+(Pair a, Pair b) { return {a.re + b.re, a.im + b.im}; }
};

template <typename T, int kRows, bool kUnitRowStride>
HWY_INLINE void TinyColumns(const MatrixProduct& p, const T* a, const T* b, T* c) {
  const int64_t row = kUnitRowStride ? 1 : p.a.row_stride;
  for (int64_t j = 0; j < p.n; ++j) {
    T sums[kRows] = {};
    if (p.accumulates) std::memcpy(static_cast<void*>(sums), c + j * p.c_column_stride, sizeof(sums));
    for (int64_t q = 0; q < p.k; ++q) {
      const T factor = b[q * p.b.row_stride + j * p.b.column_stride];
      const T* column = a + q * p.a.column_stride;
      for (int i = 0; i < kRows; ++i) sums[i] = sums[i] + column[i * row] * factor;
    }
    for (int i = 0; i < kRows; ++i) c[i + j * p.c_column_stride] = sums[i];
  }
}

// Where a column is a whole vector; wider ones than the machine's are for the compiler to split.
template <typename T, int kRows>
HWY_INLINE void TinyVectorColumns(const MatrixProduct& p, const T* a, const T* b, T* c) {
  typedef T Vector __attribute__((vector_size(kRows * sizeof(T)), may_alias));
  typedef T Unaligned __attribute__((vector_size(kRows * sizeof(T)), may_alias, aligned(1)));
  for (int64_t j = 0; j < p.n; ++j) {
    Vector sums = {};
    if (p.accumulates) sums = *reinterpret_cast<const Unaligned*>(c + j * p.c_column_stride);
    for (int64_t q = 0; q < p.k; ++q) {
      const Vector column = *reinterpret_cast<const Unaligned*>(a + q * p.a.column_stride);
      sums += column * b[q * p.b.row_stride + j * p.b.column_stride];
    }
    *reinterpret_cast<Unaligned*>(c + j * p.c_column_stride) = sums;
  }
}

#if HWY_TARGET != HWY_SCALAR

// kVectors vectors of D of complex rows, the first of which are at a and c. A step is what lies between two of them, in
// reals.
template <int kVectors, class D, typename Real>
HWY_INLINE void TinyPairVectors(D d, const MatrixProduct& p, int64_t step, const Real* a, const Real* b, Real* c) {
  static_assert(kVectors <= 4);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < p.n; ++j) {
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    Real* result = c + 2 * j * p.c_column_stride;
    if (p.accumulates) {
      sum0 = hn::LoadU(d, result);
      if constexpr (kVectors > 1) sum1 = hn::LoadU(d, result + lanes);
      if constexpr (kVectors > 2) sum2 = hn::LoadU(d, result + 2 * lanes);
      if constexpr (kVectors > 3) sum3 = hn::LoadU(d, result + 3 * lanes);
    }
    for (int64_t q = 0; q < p.k; ++q) {
      const auto factor = MakeComplexFactor(d, b + 2 * (q * p.b.row_stride + j * p.b.column_stride));
      const Real* column = a + 2 * q * p.a.column_stride;
      sum0 = hn::Add(sum0, ComplexProduct(d, hn::LoadU(d, column), factor));
      if constexpr (kVectors > 1) sum1 = hn::Add(sum1, ComplexProduct(d, hn::LoadU(d, column + step), factor));
      if constexpr (kVectors > 2) sum2 = hn::Add(sum2, ComplexProduct(d, hn::LoadU(d, column + 2 * step), factor));
      if constexpr (kVectors > 3) sum3 = hn::Add(sum3, ComplexProduct(d, hn::LoadU(d, column + 3 * step), factor));
    }
    hn::StoreU(sum0, d, result);
    if constexpr (kVectors > 1) hn::StoreU(sum1, d, result + lanes);
    if constexpr (kVectors > 2) hn::StoreU(sum2, d, result + 2 * lanes);
    if constexpr (kVectors > 3) hn::StoreU(sum3, d, result + 3 * lanes);
  }
}

// kRows complex rows, as many at a time as the widest vectors hold that they fill.
template <typename Real, int kRows, bool kUnitRowStride>
HWY_INLINE void TinyPairRows(const MatrixProduct& p, const Real* a, const Real* b, Real* c) {
  // Where vectors have no fixed size they have 16 bytes at least.
  constexpr int kFit = HWY_HAVE_SCALABLE ? 8 / sizeof(Real) : HWY_MAX_BYTES / (2 * sizeof(Real));
  constexpr int kWanted = kRows >= 8 ? 8 : kRows >= 4 ? 4 : kRows >= 2 ? 2 : 1;
  constexpr int kVectorRows = kUnitRowStride ? HWY_MAX(HWY_MIN(kFit, kWanted), 1) : 1;
  constexpr int kVectors = HWY_MIN(kRows / kVectorRows, 4);
  constexpr int kDone = kVectors * kVectorRows;
  const hn::CappedTag<Real, 2 * kVectorRows> d;
  TinyPairVectors<kVectors>(d, p, kUnitRowStride ? 2 * kVectorRows : 2 * p.a.row_stride, a, b, c);
  if constexpr (kDone < kRows) {
    const int64_t row = kUnitRowStride ? 1 : p.a.row_stride;
    TinyPairRows<Real, kRows - kDone, kUnitRowStride>(p, a + 2 * kDone * row, b, c + 2 * kDone);
  }
}

#endif

template <typename T, int kRows, bool kUnitRowStride>
HWY_INLINE void TinyAnyColumns(const MatrixProduct& p, const T* a, const T* b, T* c) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (!std::is_arithmetic_v<T>) {
    TinyPairRows<typename T::Part, kRows, kUnitRowStride>(p, &a->re, &b->re, &c->re);
  } else  // NOLINT: the loop is the other branch
#endif
  {
    TinyColumns<T, kRows, kUnitRowStride>(p, a, b, c);
  }
}

template <typename T, int kRows>
HWY_INLINE void TinyRows(const MatrixProduct& p, const T* a, const T* b, T* c) {
  constexpr bool kIsVector = std::is_arithmetic_v<T> && kRows > 1 && (kRows & (kRows - 1)) == 0;
  if (p.a.row_stride == 1) {
    if constexpr (kIsVector) {
      TinyVectorColumns<T, kRows>(p, a, b, c);
    } else {
      TinyAnyColumns<T, kRows, true>(p, a, b, c);
    }
  } else {
    TinyAnyColumns<T, kRows, false>(p, a, b, c);
  }
}

template <typename T>
void TinyProduct(const MatrixProduct& p, const void* a_bytes, const void* b_bytes, void* c_bytes) {
  const T* a = static_cast<const T*>(a_bytes);
  const T* b = static_cast<const T*>(b_bytes);
  T* c = static_cast<T*>(c_bytes);
  switch (p.m) {
    case 1:
      return TinyRows<T, 1>(p, a, b, c);
    case 2:
      return TinyRows<T, 2>(p, a, b, c);
    case 3:
      return TinyRows<T, 3>(p, a, b, c);
    case 4:
      return TinyRows<T, 4>(p, a, b, c);
    case 5:
      return TinyRows<T, 5>(p, a, b, c);
    case 6:
      return TinyRows<T, 6>(p, a, b, c);
    case 7:
      return TinyRows<T, 7>(p, a, b, c);
    case 8:
      return TinyRows<T, 8>(p, a, b, c);
  }
}

template <typename T>
HWY_INLINE void ScaledColumn(const T* a, const T* factor, int64_t count, T* HWY_RESTRICT c) {
  for (int64_t i = 0; i < count; ++i) c[i] = a[i] * *factor;
}

#if HWY_TARGET != HWY_SCALAR
template <typename Real>
HWY_INLINE void ScaledColumn(const Pair<Real>* a_pairs, const Pair<Real>* factor, int64_t count,
                             Pair<Real>* HWY_RESTRICT c_pairs) {
  const Real* a = &a_pairs->re;
  Real* c = &c_pairs->re;
  const hn::ScalableTag<Real> d;
  const hn::CappedTag<Real, 2> pair;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factors = MakeComplexFactor(d, &factor->re);
  int64_t i = 0;
  for (; i + lanes <= 2 * count; i += lanes) hn::StoreU(ComplexProduct(d, hn::LoadU(d, a + i), factors), d, c + i);
  const auto one_factor = MakeComplexFactor(pair, &factor->re);
  for (; i < 2 * count; i += 2) {
    hn::StoreU(ComplexProduct(pair, hn::LoadU(pair, a + i), one_factor), pair, c + i);
  }
}
#endif

template <typename T>
void OuterProduct(const MatrixProduct& p, const void* a, const void* b, void* c) {
  for (int64_t j = 0; j < p.n; ++j) {
    const T* column = static_cast<const T*>(a);
    const T* factor = static_cast<const T*>(b) + j * p.b.column_stride;
    T* sums = static_cast<T*>(c) + j * p.c_column_stride;
    if (p.accumulates) {
      for (int64_t i = 0; i < p.m; ++i) sums[i] = sums[i] + column[i] * *factor;
    } else {
      ScaledColumn(column, factor, p.m, sums);
    }
  }
}

struct PlainSum {
  template <typename V, typename T>
  static HWY_INLINE V Add(V sum, V x, T factor) {
    return sum + x * factor;
  }
  template <typename V>
  static HWY_INLINE V Join(V x, V y) {
    return x + y;
  }
};

struct OrOfAnds {
  template <typename V, typename T>
  static HWY_INLINE V Add(V sum, V x, T factor) {
    return sum | (x & factor);
  }
  template <typename V>
  static HWY_INLINE V Join(V x, V y) {
    return x | y;
  }
};

// Two vectors of rows by kColumns columns of the result stay in registers over all of k.
template <typename Algebra, typename T, int kColumns>
HWY_INLINE void RegisterBlock(const MatrixProduct& p, const T* a, const T* b, T* c) {
  typedef T Vector __attribute__((vector_size(kVectorBytes), may_alias));
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), may_alias, aligned(1)));
  constexpr int64_t kLanes = kVectorBytes / sizeof(T);
  Vector low[kColumns] = {};
  Vector high[kColumns] = {};
  for (int64_t q = 0; q < p.k; ++q) {
    const T* column = a + q * p.a.column_stride;
    const Vector x = *reinterpret_cast<const Unaligned*>(column);
    const Vector y = *reinterpret_cast<const Unaligned*>(column + kLanes);
    HWY_UNROLL(4)
    for (int j = 0; j < kColumns; ++j) {
      const T factor = b[q * p.b.row_stride + j * p.b.column_stride];
      low[j] = Algebra::Add(low[j], x, factor);
      high[j] = Algebra::Add(high[j], y, factor);
    }
  }
  HWY_UNROLL(4)
  for (int j = 0; j < kColumns; ++j) {
    Unaligned* const result = reinterpret_cast<Unaligned*>(c + j * p.c_column_stride);
    Unaligned* const next = reinterpret_cast<Unaligned*>(c + j * p.c_column_stride + kLanes);
    *result = p.accumulates ? Algebra::Join(*result, low[j]) : low[j];
    *next = p.accumulates ? Algebra::Join(*next, high[j]) : high[j];
  }
}

template <typename Algebra, typename T, int kColumns>
HWY_INLINE void ColumnStrip(const MatrixProduct& p, const T* a, const T* b, T* c) {
  constexpr int64_t kRows = 2 * kVectorBytes / sizeof(T);
  int64_t i = 0;
  for (; i + kRows <= p.m; i += kRows) RegisterBlock<Algebra, T, kColumns>(p, a + i, b, c + i);
  if (i == p.m) return;
  // The rows that are left over.
  const int64_t rows = p.m - i;
  for (int j = 0; j < kColumns; ++j) {
    T sums[kRows] = {};
    for (int64_t q = 0; q < p.k; ++q) {
      const T factor = b[q * p.b.row_stride + j * p.b.column_stride];
      const T* column = a + i + q * p.a.column_stride;
      for (int64_t r = 0; r < rows; ++r) sums[r] = Algebra::Add(sums[r], column[r], factor);
    }
    T* const result = c + i + j * p.c_column_stride;
    if (p.accumulates) {
      for (int64_t r = 0; r < rows; ++r) sums[r] = Algebra::Join(result[r], sums[r]);
    }
    std::memcpy(result, sums, static_cast<size_t>(rows) * sizeof(T));
  }
}

template <typename Algebra, typename T>
void GeneralProduct(const MatrixProduct& p, const void* a_bytes, const void* b_bytes, void* c_bytes) {
  const T* a = static_cast<const T*>(a_bytes);
  const T* b = static_cast<const T*>(b_bytes);
  T* c = static_cast<T*>(c_bytes);
  int64_t j = 0;
  for (; j + 4 <= p.n; j += 4) {
    ColumnStrip<Algebra, T, 4>(p, a, b + j * p.b.column_stride, c + j * p.c_column_stride);
  }
  for (; j < p.n; ++j) ColumnStrip<Algebra, T, 1>(p, a, b + j * p.b.column_stride, c + j * p.c_column_stride);
}

}  // namespace

GemmLoops BestGemmLoops(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {nullptr, nullptr, GeneralProduct<OrOfAnds, uint8_t>};
    case DType::kI32:
      return {TinyProduct<uint32_t>, nullptr, GeneralProduct<PlainSum, uint32_t>};
    case DType::kI64:
      return {TinyProduct<uint64_t>, nullptr, GeneralProduct<PlainSum, uint64_t>};
    case DType::kF32:
      return {TinyProduct<float>, OuterProduct<float>, GeneralProduct<PlainSum, float>};
    case DType::kF64:
      return {TinyProduct<double>, OuterProduct<double>, GeneralProduct<PlainSum, double>};
    case DType::kC64:
      return {TinyProduct<Pair<float>>, OuterProduct<Pair<float>>, nullptr};
    case DType::kC128:
      return {TinyProduct<Pair<double>>, OuterProduct<Pair<double>>, nullptr};
    default:
      return {};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestGemmLoops);

GemmLoops GetGemmLoops(DType dtype) { return HWY_DYNAMIC_DISPATCH(BestGemmLoops)(dtype); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
