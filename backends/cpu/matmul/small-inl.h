// Products with a small matrix on one side, of reals and of complex numbers as pairs of reals. Bound by memory or by
// the rate of fused multiply-adds; each element is the fused sum over k in order, wherever it lies.
#if defined(TENSORD_BACKENDS_CPU_MATMUL_SMALL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATMUL_SMALL_INL_H_
#undef TENSORD_BACKENDS_CPU_MATMUL_SMALL_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATMUL_SMALL_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "backends/cpu/matmul/loops.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A small left matrix as columns of reals. A complex matrix has twice the rows and twice the columns: each of its
// columns, and the column times the imaginary unit, so that its product with (re, im) is a real one.
template <typename Real>
struct LeftMatrix {
  const Real* columns = nullptr;
  int64_t step = 0;
  int64_t rows = 0;
};

// kVectors vectors hold a column; of the last one, the first lanes only.
template <int kVectors, bool kIsComplex, class D, typename Real>
HWY_INLINE void LeftColumns(D d, const MatrixProduct& p, const LeftMatrix<Real>& left, const Real* b, Real* c) {
  static_assert(kVectors <= 4);
  using V = hn::Vec<D>;
  constexpr int64_t kParts = kIsComplex ? 2 : 1;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t last_lanes = left.rows - (kVectors - 1) * lanes;
  const bool is_whole = last_lanes == lanes;
  const auto mask = hn::FirstN(d, static_cast<size_t>(last_lanes));
  const int64_t b_row = kParts * p.b.row_stride, b_column = kParts * p.b.column_stride;
  const int64_t c_column = kParts * p.c_column_stride;
  const auto load = [&](const Real* from, bool is_last)
                        HWY_ATTR { return is_last && !is_whole ? hn::MaskedLoad(mask, d, from) : hn::LoadU(d, from); };
  const auto store = [&](V v, Real* to, bool is_last) HWY_ATTR {
    if (is_last && !is_whole) {
      hn::BlendedStore(v, mask, d, to);
    } else {
      hn::StoreU(v, d, to);
    }
  };
  int64_t j = 0;
  if constexpr (kVectors <= 2) {
    constexpr bool kTwo = kVectors == 2;
    for (; j + 4 <= p.n; j += 4) {
      const Real* b0 = b + j * b_column;
      Real* const c0 = c + j * c_column;
      Real* const c1 = c0 + c_column;
      Real* const c2 = c1 + c_column;
      Real* const c3 = c2 + c_column;
      V low0 = hn::Zero(d), low1 = low0, low2 = low0, low3 = low0;
      V high0 = low0, high1 = low0, high2 = low0, high3 = low0;
      if (p.accumulates) {
        low0 = load(c0, !kTwo), low1 = load(c1, !kTwo), low2 = load(c2, !kTwo), low3 = load(c3, !kTwo);
        if constexpr (kTwo) {
          high0 = load(c0 + lanes, true), high1 = load(c1 + lanes, true);
          high2 = load(c2 + lanes, true), high3 = load(c3 + lanes, true);
        }
      }
      const Real* column = left.columns;
      for (int64_t q = 0; q < p.k; ++q, b0 += b_row) {
        for (int64_t part = 0; part < kParts; ++part, column += left.step) {
          const V f0 = hn::Set(d, b0[part]), f1 = hn::Set(d, b0[b_column + part]);
          const V f2 = hn::Set(d, b0[2 * b_column + part]), f3 = hn::Set(d, b0[3 * b_column + part]);
          const V x = hn::LoadU(d, column);
          low0 = hn::MulAdd(x, f0, low0), low1 = hn::MulAdd(x, f1, low1);
          low2 = hn::MulAdd(x, f2, low2), low3 = hn::MulAdd(x, f3, low3);
          if constexpr (kTwo) {
            const V y = hn::LoadU(d, column + lanes);
            high0 = hn::MulAdd(y, f0, high0), high1 = hn::MulAdd(y, f1, high1);
            high2 = hn::MulAdd(y, f2, high2), high3 = hn::MulAdd(y, f3, high3);
          }
        }
      }
      store(low0, c0, !kTwo), store(low1, c1, !kTwo), store(low2, c2, !kTwo), store(low3, c3, !kTwo);
      if constexpr (kTwo) {
        store(high0, c0 + lanes, true), store(high1, c1 + lanes, true);
        store(high2, c2 + lanes, true), store(high3, c3 + lanes, true);
      }
    }
  }
  for (; j < p.n; ++j) {
    const Real* b0 = b + j * b_column;
    Real* const c0 = c + j * c_column;
    V sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    if (p.accumulates) {
      sum0 = load(c0, kVectors == 1);
      if constexpr (kVectors > 1) sum1 = load(c0 + lanes, kVectors == 2);
      if constexpr (kVectors > 2) sum2 = load(c0 + 2 * lanes, kVectors == 3);
      if constexpr (kVectors > 3) sum3 = load(c0 + 3 * lanes, kVectors == 4);
    }
    const Real* column = left.columns;
    for (int64_t q = 0; q < p.k; ++q, b0 += b_row) {
      for (int64_t part = 0; part < kParts; ++part, column += left.step) {
        const V factor = hn::Set(d, b0[part]);
        sum0 = hn::MulAdd(hn::LoadU(d, column), factor, sum0);
        if constexpr (kVectors > 1) sum1 = hn::MulAdd(hn::LoadU(d, column + lanes), factor, sum1);
        if constexpr (kVectors > 2) sum2 = hn::MulAdd(hn::LoadU(d, column + 2 * lanes), factor, sum2);
        if constexpr (kVectors > 3) sum3 = hn::MulAdd(hn::LoadU(d, column + 3 * lanes), factor, sum3);
      }
    }
    store(sum0, c0, kVectors == 1);
    if constexpr (kVectors > 1) store(sum1, c0 + lanes, kVectors == 2);
    if constexpr (kVectors > 2) store(sum2, c0 + 2 * lanes, kVectors == 3);
    if constexpr (kVectors > 3) store(sum3, c0 + 3 * lanes, kVectors == 4);
  }
}

inline constexpr int64_t kMaxLeftRows = 2 * kMaxTinyRows;  // reals

// Copies a into columns of kMaxLeftRows reals, of which the last are 0.
template <bool kIsComplex, typename Real>
HWY_INLINE void CopyLeft(const MatrixProduct& p, const Real* a, Real* columns) {
  constexpr int64_t kParts = kIsComplex ? 2 : 1;
  for (int64_t q = 0; q < p.k; ++q) {
    Real* const column = columns + kParts * q * kMaxLeftRows;
    for (int64_t i = 0; i < p.m; ++i) {
      const Real* const x = a + kParts * (i * p.a.row_stride + q * p.a.column_stride);
      column[kParts * i] = x[0];
      if constexpr (kIsComplex) {
        column[2 * i + 1] = x[1];
        column[kMaxLeftRows + 2 * i] = -x[1];
        column[kMaxLeftRows + 2 * i + 1] = x[0];
      }
    }
  }
}

template <bool kIsComplex, class D, typename Real>
HWY_INLINE void LeftProductAs(D d, const MatrixProduct& p, const ProductCopies& copies, const Real* a, const Real* b,
                              Real* c) {
  constexpr int64_t kParts = kIsComplex ? 2 : 1;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t rows = kParts * p.m;
  alignas(64) Real storage[2 * kMaxTinyTerms * kMaxLeftRows] = {};
  LeftMatrix<Real> left = {storage, kMaxLeftRows, 0};
  // Whole vectors can be read where they are.
  const bool reads_as_it_lies = !kIsComplex && p.a.row_stride == 1 && rows % lanes == 0;
  if (reads_as_it_lies) left.step = p.a.column_stride;
  for (int64_t i = 0; i < copies.count; ++i) {
    if (reads_as_it_lies) {
      left.columns = a + i * copies.a_step;
    } else if (i == 0 || copies.a_step != 0) {
      CopyLeft<kIsComplex>(p, a + kParts * i * copies.a_step, storage);
    }
    const Real* const right = b + kParts * i * copies.b_step;
    Real* const result = c + kParts * i * copies.c_step;
    // More than four vectors of rows only where vectors are short.
    LeftMatrix<Real> some = left;
    for (int64_t first = 0; first < rows; first += some.rows, some.columns += some.rows) {
      some.rows = std::min(rows - first, 4 * lanes);
      const int64_t vectors = (some.rows + lanes - 1) / lanes;
      if (vectors == 1) {
        LeftColumns<1, kIsComplex>(d, p, some, right, result + first);
      } else if (vectors == 2) {
        LeftColumns<2, kIsComplex>(d, p, some, right, result + first);
      } else if (vectors == 3) {
        LeftColumns<3, kIsComplex>(d, p, some, right, result + first);
      } else {
        LeftColumns<4, kIsComplex>(d, p, some, right, result + first);
      }
    }
  }
}

template <typename Real, bool kIsComplex>
void LeftProduct(const MatrixProduct& p, const ProductCopies& copies, const void* a, const void* b, void* c) {
  const Real* const left = static_cast<const Real*>(a);
  const Real* const right = static_cast<const Real*>(b);
  Real* const result = static_cast<Real*>(c);
  const int64_t bytes = (kIsComplex ? 2 : 1) * p.m * static_cast<int64_t>(sizeof(Real));
  if (bytes <= 16) {
    LeftProductAs<kIsComplex>(hn::CappedTag<Real, 16 / sizeof(Real)>(), p, copies, left, right, result);
  } else if (bytes <= 32) {
    LeftProductAs<kIsComplex>(hn::CappedTag<Real, 32 / sizeof(Real)>(), p, copies, left, right, result);
  } else {
    LeftProductAs<kIsComplex>(hn::CappedTag<Real, 64 / sizeof(Real)>(), p, copies, left, right, result);
  }
}

// Rows of complex numbers times kColumns columns; reads and writes whole vectors. Returns the reals that it did.
template <int kColumns, class D, typename Real>
HWY_INLINE int64_t PairRows(D d, const MatrixProduct& p, int64_t first, const Real* a, const Real* b, Real* c) {
  using V = hn::Vec<D>;
  static_assert(kColumns <= 4);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t c_column = 2 * p.c_column_stride, b_column = 2 * p.b.column_stride;
  const V minus_even = hn::OddEven(hn::Zero(d), hn::SignBit(d));
  int64_t i = first;
  for (; i + lanes <= 2 * p.m; i += lanes) {
    V sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    if (p.accumulates) {
      sum0 = hn::LoadU(d, c + i);
      if constexpr (kColumns > 1) sum1 = hn::LoadU(d, c + i + c_column);
      if constexpr (kColumns > 2) sum2 = hn::LoadU(d, c + i + 2 * c_column);
      if constexpr (kColumns > 3) sum3 = hn::LoadU(d, c + i + 3 * c_column);
    }
    for (int64_t q = 0; q < p.k; ++q) {
      const V x = hn::LoadU(d, a + i + 2 * q * p.a.column_stride);
      const V turned = hn::Xor(hn::Reverse2(d, x), minus_even);
      const Real* const factor = b + 2 * q * p.b.row_stride;
      const auto add = [&](V sum, const Real* f) HWY_ATTR {
        return hn::MulAdd(turned, hn::Set(d, f[1]), hn::MulAdd(x, hn::Set(d, f[0]), sum));
      };
      sum0 = add(sum0, factor);
      if constexpr (kColumns > 1) sum1 = add(sum1, factor + b_column);
      if constexpr (kColumns > 2) sum2 = add(sum2, factor + 2 * b_column);
      if constexpr (kColumns > 3) sum3 = add(sum3, factor + 3 * b_column);
    }
    hn::StoreU(sum0, d, c + i);
    if constexpr (kColumns > 1) hn::StoreU(sum1, d, c + i + c_column);
    if constexpr (kColumns > 2) hn::StoreU(sum2, d, c + i + 2 * c_column);
    if constexpr (kColumns > 3) hn::StoreU(sum3, d, c + i + 3 * c_column);
  }
  return i;
}

template <int kColumns, typename Real>
HWY_INLINE void PairStrip(const MatrixProduct& p, const Real* a, const Real* b, Real* c) {
  const int64_t done = PairRows<kColumns>(hn::ScalableTag<Real>(), p, 0, a, b, c);
  PairRows<kColumns>(hn::CappedTag<Real, 2>(), p, done, a, b, c);
}

// A tall a of complex numbers with a.row_stride = 1 through a few columns.
template <typename Real>
void PairProduct(const MatrixProduct& p, const void* a_bytes, const void* b_bytes, void* c_bytes) {
  const Real* const a = static_cast<const Real*>(a_bytes);
  const Real* const b = static_cast<const Real*>(b_bytes);
  Real* const c = static_cast<Real*>(c_bytes);
  int64_t j = 0;
  for (; j + 4 <= p.n; j += 4) PairStrip<4>(p, a, b + 2 * j * p.b.column_stride, c + 2 * j * p.c_column_stride);
  for (; j < p.n; ++j) PairStrip<1>(p, a, b + 2 * j * p.b.column_stride, c + 2 * j * p.c_column_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR

#endif  // TENSORD_BACKENDS_CPU_MATMUL_SMALL_INL_H_
