#include "backends/cpu/matmul/loops.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/math/complex_product-inl.h"
#include "backends/cpu/matmul/small-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

// The compiler is asked for vectors of this size.
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

template <typename T, int kRows>
HWY_INLINE void TinyRows(const MatrixProduct& p, const T* a, const T* b, T* c) {
  if (p.a.row_stride == 1) {
    TinyColumns<T, kRows, true>(p, a, b, c);
  } else {
    TinyColumns<T, kRows, false>(p, a, b, c);
  }
}

template <typename T>
HWY_INLINE void TinyOne(const MatrixProduct& p, const T* a, const T* b, T* c) {
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
void TinyProduct(const MatrixProduct& p, const ProductCopies& copies, const void* a_bytes, const void* b_bytes,
                 void* c_bytes) {
  const T* a = static_cast<const T*>(a_bytes);
  const T* b = static_cast<const T*>(b_bytes);
  T* c = static_cast<T*>(c_bytes);
  for (int64_t i = 0; i < copies.count; ++i) {
    TinyOne<T>(p, a + i * copies.a_step, b + i * copies.b_step, c + i * copies.c_step);
  }
}

// Begins with +0 as every sum does, so that no -0 comes of it.
template <typename T>
HWY_INLINE void ScaledColumn(const T* a, const T* factor, int64_t count, T* HWY_RESTRICT c) {
  for (int64_t i = 0; i < count; ++i) c[i] = T{} + a[i] * *factor;
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
  for (; i + lanes <= 2 * count; i += lanes) {
    hn::StoreU(hn::Add(ComplexProduct(d, hn::LoadU(d, a + i), factors), hn::Zero(d)), d, c + i);
  }
  const auto one_factor = MakeComplexFactor(pair, &factor->re);
  for (; i < 2 * count; i += 2) {
    hn::StoreU(hn::Add(ComplexProduct(pair, hn::LoadU(pair, a + i), one_factor), hn::Zero(pair)), pair, c + i);
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

#if HWY_TARGET == HWY_SCALAR

template <typename Real, bool kIsComplex>
void LeftProduct(const MatrixProduct& p, const ProductCopies& copies, const void* a, const void* b, void* c) {
  TinyProduct<std::conditional_t<kIsComplex, Pair<Real>, Real>>(p, copies, a, b, c);
}

template <typename Real>
void PairProduct(const MatrixProduct& p, const void* a, const void* b, void* c) {
  const Pair<Real>* const left = static_cast<const Pair<Real>*>(a);
  const Pair<Real>* const right = static_cast<const Pair<Real>*>(b);
  for (int64_t j = 0; j < p.n; ++j) {
    Pair<Real>* const column = static_cast<Pair<Real>*>(c) + j * p.c_column_stride;
    for (int64_t i = 0; i < p.m; ++i) {
      Pair<Real> sum = p.accumulates ? column[i] : Pair<Real>{0, 0};
      for (int64_t q = 0; q < p.k; ++q) {
        sum = sum + left[i + q * p.a.column_stride] * right[q * p.b.row_stride + j * p.b.column_stride];
      }
      column[i] = sum;
    }
  }
}

#endif

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
      return {LeftProduct<float, false>, OuterProduct<float>, GeneralProduct<PlainSum, float>};
    case DType::kF64:
      return {LeftProduct<double, false>, OuterProduct<double>, GeneralProduct<PlainSum, double>};
    case DType::kC64:
      return {LeftProduct<float, true>, OuterProduct<Pair<float>>, PairProduct<float>};
    case DType::kC128:
      return {LeftProduct<double, true>, OuterProduct<Pair<double>>, PairProduct<double>};
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
