#include "backends/cpu/linalg/large/panel_vector_loops.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/linalg/lapack/number_parts.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linalg/large/panel_vector_loops.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::CappedTag<T, 16>;

constexpr int64_t kFetchedBytes = 1 << 15;  // of complex columns, ahead of their use

// True if part of a vector is read and written as fast as all of it.
constexpr bool kHasMasks = HWY_TARGET <= HWY_AVX2;

// Returns the first `count` lanes, or all; nothing beyond is read.
template <typename T>
HWY_INLINE hn::Vec<Tag<T>> LoadSome(const T* x, int64_t count) {
  const Tag<T> d;
  if (count == static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, x);
  if constexpr (kHasMasks) return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, x);
  alignas(64) T buffer[16] = {};
  std::copy_n(x, count, buffer);
  return hn::Load(d, buffer);
}

template <typename T>
HWY_INLINE void StoreSome(hn::Vec<Tag<T>> value, int64_t count, T* y) {
  const Tag<T> d;
  if (count == static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(value, d, y);
  if constexpr (kHasMasks) return hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count)), d, y);
  alignas(64) T buffer[16];
  hn::Store(value, d, buffer);
  std::copy_n(buffer, count, y);
}

// Calls step(i, count) for vectors from `begin` to `end`. The first is part of a vector if that makes the others
// aligned: `offset` counts from an aligned place to `begin`, -1 if nothing is known.
template <typename T, typename Step>
HWY_INLINE void ForVectors(int64_t begin, int64_t end, int64_t offset, const Step& step) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<T>()));
  int64_t i = begin;
  if (kHasMasks && offset % lanes > 0 && end - begin >= lanes) {
    step(i, lanes - offset % lanes);
    i += lanes - offset % lanes;
  }
  for (; i + lanes <= end; i += lanes) step(i, lanes);
  if (i < end) step(i, end - i);
}

template <int kColumns, typename T>
HWY_NOINLINE void AddSymmetricColumns(int64_t n, int64_t j, const T* HWY_RESTRICT a, int64_t offset, int64_t leading,
                                      const T* HWY_RESTRICT x, T* HWY_RESTRICT y) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const T* const columns = a + j * leading;
  T dots[kColumns] = {};
  V factors[kColumns], sums[kColumns];
  for (int c = 0; c < kColumns; ++c) {
    factors[c] = hn::Set(d, x[j + c]);
    sums[c] = hn::Zero(d);
    for (int r = c; r < kColumns; ++r) {
      const T entry = columns[c * leading + j + r];
      y[j + r] += entry * x[j + c];
      if (r > c) dots[c] += entry * x[j + r];
    }
  }
  ForVectors<T>(j + kColumns, n, offset, [&](int64_t i, int64_t count) HWY_ATTR {
    const V other = LoadSome(x + i, count);
    V sum = LoadSome(y + i, count);
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      const V entry = LoadSome(columns + c * leading + i, count);
      sum = hn::MulAdd(entry, factors[c], sum);
      sums[c] = hn::MulAdd(entry, other, sums[c]);
    }
    StoreSome(sum, count, y + i);
  });
  for (int c = 0; c < kColumns; ++c) y[j + c] += hn::GetLane(hn::SumOfLanes(d, sums[c])) + dots[c];
}

// Column c of the block of `count` columns on the diagonal, by parts: its entries start at `column`, those of x and y
// with the block.
template <typename R>
HWY_INLINE void AddDiagonalBlockColumn(int64_t c, int64_t count, const R* column, const R* x, R* y) {
  for (int part = 0; part < 2; ++part) y[2 * c + part] += column[2 * c] * x[2 * c + part];
  for (int64_t r = c + 1; r < count; ++r) {
    const R real = column[2 * r], imaginary = column[2 * r + 1];
    y[2 * r] += real * x[2 * c] - imaginary * x[2 * c + 1];
    y[2 * r + 1] += real * x[2 * c + 1] + imaginary * x[2 * c];
    y[2 * c] += real * x[2 * r] + imaginary * x[2 * r + 1];
    y[2 * c + 1] += real * x[2 * r + 1] - imaginary * x[2 * r];
  }
}

// Numbers lie in pairs of parts. An entry as it lies is multiplied by one part of a number at a time; parts of products
// that belong to the other part of a sum move there once for all columns.
template <int kColumns, typename R>
HWY_NOINLINE void AddHermitianColumns(int64_t n, int64_t j, const R* HWY_RESTRICT a, int64_t offset, int64_t leading,
                                      const R* HWY_RESTRICT x, R* HWY_RESTRICT y) {
  const Tag<R> d;
  using V = hn::Vec<Tag<R>>;
  const R* const columns = a + 2 * j * leading;
  V reals[kColumns], imaginaries[kColumns];         // of the numbers of x that meet the columns
  V real_sums[kColumns], imaginary_sums[kColumns];  // of the columns' products with x
  for (int c = 0; c < kColumns; ++c) {
    reals[c] = hn::Set(d, x[2 * (j + c)]);
    imaginaries[c] = hn::Set(d, x[2 * (j + c) + 1]);
    real_sums[c] = imaginary_sums[c] = hn::Zero(d);
  }
  ForVectors<R>(2 * (j + kColumns), 2 * n, offset, [&](int64_t i, int64_t count) HWY_ATTR {
    const V other = LoadSome(x + i, count);
    const V swapped = hn::Reverse2(d, other);
    const V turned = hn::OddEven(hn::Neg(swapped), swapped);  // imaginary part, -real part
    V sum = LoadSome(y + i, count), crossed = hn::Zero(d);
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      const V entry = LoadSome(columns + 2 * c * leading + i, count);
      sum = hn::MulAdd(entry, reals[c], sum);
      crossed = hn::MulAdd(entry, imaginaries[c], crossed);
      real_sums[c] = hn::MulAdd(entry, other, real_sums[c]);
      imaginary_sums[c] = hn::MulAdd(entry, turned, imaginary_sums[c]);
    }
    crossed = hn::Reverse2(d, crossed);
    sum = hn::OddEven(hn::Add(sum, crossed), hn::Sub(sum, crossed));
    StoreSome(sum, count, y + i);
  });
  for (int c = 0; c < kColumns; ++c) {
    R* const into = y + 2 * (j + c);
    into[0] += hn::GetLane(hn::SumOfLanes(d, real_sums[c]));
    into[1] += hn::GetLane(hn::SumOfLanes(d, imaginary_sums[c]));
    AddDiagonalBlockColumn(c, kColumns, columns + 2 * (c * leading + j), x + 2 * j, y + 2 * j);
  }
}

// y += A·x of columns that lie `leading` parts apart.
template <int kColumns, typename R>
HWY_NOINLINE void AddRealColumns(int64_t m, const R* HWY_RESTRICT a, int64_t offset, int64_t leading,
                                 const R* HWY_RESTRICT x, R* HWY_RESTRICT y) {
  const Tag<R> d;
  hn::Vec<Tag<R>> factors[kColumns];
  for (int c = 0; c < kColumns; ++c) factors[c] = hn::Set(d, x[c]);
  ForVectors<R>(0, m, offset, [&](int64_t i, int64_t count) HWY_ATTR {
    auto sum = LoadSome(y + i, count);
    HWY_UNROLL(8)
    for (int c = 0; c < kColumns; ++c) sum = hn::MulAdd(LoadSome(a + c * leading + i, count), factors[c], sum);
    StoreSome(sum, count, y + i);
  });
}

template <int kColumns, typename R>
HWY_NOINLINE void AddComplexColumns(int64_t m, const R* HWY_RESTRICT a, int64_t offset, int64_t leading,
                                    const R* HWY_RESTRICT x, R* HWY_RESTRICT y) {
  const Tag<R> d;
  hn::Vec<Tag<R>> reals[kColumns], imaginaries[kColumns];
  for (int c = 0; c < kColumns; ++c) {
    reals[c] = hn::Set(d, x[2 * c]);
    imaginaries[c] = hn::Set(d, x[2 * c + 1]);
  }
  ForVectors<R>(0, 2 * m, offset, [&](int64_t i, int64_t count) HWY_ATTR {
    auto sum = LoadSome(y + i, count), crossed = hn::Zero(d);
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      const auto entry = LoadSome(a + c * leading + i, count);
      hwy::Prefetch(a + (c + kColumns) * leading + i);
      sum = hn::MulAdd(entry, reals[c], sum);
      crossed = hn::MulAdd(entry, imaginaries[c], crossed);
    }
    crossed = hn::Reverse2(d, crossed);
    StoreSome(hn::OddEven(hn::Add(sum, crossed), hn::Sub(sum, crossed)), count, y + i);
  });
}

// y += A^T·x of such columns.
template <int kColumns, typename R>
HWY_NOINLINE void MultiplyRealColumns(int64_t m, const R* HWY_RESTRICT a, int64_t offset, int64_t leading,
                                      const R* HWY_RESTRICT x, R* HWY_RESTRICT y) {
  const Tag<R> d;
  hn::Vec<Tag<R>> sums[kColumns];
  for (int c = 0; c < kColumns; ++c) sums[c] = hn::Zero(d);
  ForVectors<R>(0, m, offset, [&](int64_t i, int64_t count) HWY_ATTR {
    const auto other = LoadSome(x + i, count);
    HWY_UNROLL(8)
    for (int c = 0; c < kColumns; ++c) sums[c] = hn::MulAdd(LoadSome(a + c * leading + i, count), other, sums[c]);
  });
  for (int c = 0; c < kColumns; ++c) y[c] += hn::GetLane(hn::SumOfLanes(d, sums[c]));
}

template <int kColumns, typename R>
HWY_NOINLINE void MultiplyComplexColumns(int64_t m, const R* HWY_RESTRICT a, int64_t offset, int64_t leading,
                                         const R* HWY_RESTRICT x, R* HWY_RESTRICT y) {
  const Tag<R> d;
  hn::Vec<Tag<R>> reals[kColumns], imaginaries[kColumns];
  for (int c = 0; c < kColumns; ++c) reals[c] = imaginaries[c] = hn::Zero(d);
  ForVectors<R>(0, 2 * m, offset, [&](int64_t i, int64_t count) HWY_ATTR {
    const auto other = LoadSome(x + i, count);
    const auto turned = hn::OddEven(hn::Neg(other), other), swapped = hn::Reverse2(d, other);
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      const auto entry = LoadSome(a + c * leading + i, count);
      hwy::Prefetch(a + (c + kColumns) * leading + i);
      reals[c] = hn::MulAdd(entry, turned, reals[c]);
      imaginaries[c] = hn::MulAdd(entry, swapped, imaginaries[c]);
    }
  });
  for (int c = 0; c < kColumns; ++c) {
    y[2 * c] += hn::GetLane(hn::SumOfLanes(d, reals[c]));
    y[2 * c + 1] += hn::GetLane(hn::SumOfLanes(d, imaginaries[c]));
  }
}

// Calls add(columns, j) for kMost columns at a time, as long as there are as many.
template <int kMost, typename Add>
HWY_INLINE void ForColumns(int64_t begin, int64_t end, const Add& add) {
  int64_t j = begin;
  for (; j + kMost <= end; j += kMost) add(std::integral_constant<int, kMost>(), j);
  for (; j < end; ++j) add(std::integral_constant<int, 1>(), j);
}

// How many parts a row is from an aligned place, in all columns; -1 if it is not the same in all.
template <typename T>
HWY_INLINE int64_t PlaceOfRow(int64_t row, int64_t offset, int64_t leading) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<lapack::Real<T>>()));
  return leading * kNumberParts<T> % lanes == 0 ? (offset + row) * kNumberParts<T> % lanes : -1;
}

template <typename T>
void AddSymmetric(int64_t n, int64_t begin, int64_t end, const T* a, int64_t offset, int64_t leading, const T* x,
                  T* y) {
  ForColumns<4>(begin, end, [&](auto columns, int64_t j) HWY_ATTR {
    constexpr int kColumns = decltype(columns)::value;
    AddSymmetricColumns<kColumns>(n, j, a, PlaceOfRow<T>(j + kColumns, offset, leading), leading, x, y);
  });
}

template <typename R>
void AddHermitian(int64_t n, int64_t begin, int64_t end, const std::complex<R>* a, int64_t offset, int64_t leading,
                  const std::complex<R>* x, std::complex<R>* y) {
  const R *const matrix = reinterpret_cast<const R*>(a), *const vector = reinterpret_cast<const R*>(x);
  R* const into = reinterpret_cast<R*>(y);
  if constexpr (HWY_TARGET == HWY_SCALAR) {  // vectors of one lane have no pairs of parts
    for (int64_t j = begin; j < end; ++j) {
      AddDiagonalBlockColumn(0, n - j, matrix + 2 * (j * leading + j), vector + 2 * j, into + 2 * j);
    }
    return;
  }
  ForColumns<4>(begin, end, [&](auto columns, int64_t j) HWY_ATTR {
    constexpr int kColumns = decltype(columns)::value;
    const int64_t place = PlaceOfRow<std::complex<R>>(j + kColumns, offset, leading);
    AddHermitianColumns<kColumns>(n, j, matrix, place, leading, vector, into);
  });
}

// Walks columns of m×k A, complex ones in pieces of some rows, so that numbers fetched ahead for the next columns stay
// in the nearest cache: add(columns, first row, rows, first column, the row's distance from an aligned place). For real
// ones, twice as many at a time, the processor itself fetches as fast.
template <typename T, typename Add>
HWY_INLINE void ForPieces(int64_t m, int64_t k, int64_t offset, int64_t leading, const Add& add) {
  constexpr int kColumns = 8 / kNumberParts<T>;
  const int64_t most = kNumberParts<T> == 1 ? m : kFetchedBytes / kColumns / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < m; i += most) {
    const int64_t place = PlaceOfRow<T>(i, offset, leading);
    ForColumns<kColumns>(0, k,
                         [&](auto columns, int64_t j) HWY_ATTR { add(columns, i, std::min(most, m - i), j, place); });
  }
}

template <typename T>
void AddProduct(int64_t m, int64_t k, const T* a, int64_t offset, int64_t leading, const T* x, T* y) {
  using R = lapack::Real<T>;
  constexpr int kParts = kNumberParts<T>;
  if constexpr (kParts == 2 && HWY_TARGET == HWY_SCALAR) {
    for (int64_t j = 0; j < k; ++j) {
      for (int64_t i = 0; i < m; ++i) y[i] += Multiply(a[j * leading + i], x[j]);
    }
    return;
  }
  ForPieces<T>(m, k, offset, leading, [&](auto columns, int64_t i, int64_t rows, int64_t j, int64_t place) HWY_ATTR {
    constexpr int kColumns = decltype(columns)::value;
    const R* const first = reinterpret_cast<const R*>(a + j * leading + i);
    const R* const factors = reinterpret_cast<const R*>(x + j);
    R* const into = reinterpret_cast<R*>(y + i);
    if constexpr (kParts == 2) {
      AddComplexColumns<kColumns>(rows, first, place, 2 * leading, factors, into);
    } else {
      AddRealColumns<kColumns>(rows, first, place, leading, factors, into);
    }
  });
}

template <typename T>
void MultiplyTransposed(int64_t m, int64_t k, const T* a, int64_t offset, int64_t leading, const T* x, T* y) {
  using R = lapack::Real<T>;
  constexpr int kParts = kNumberParts<T>;
  std::fill_n(y, k, T(0));
  if constexpr (kParts == 2 && HWY_TARGET == HWY_SCALAR) {
    for (int64_t j = 0; j < k; ++j) {
      for (int64_t i = 0; i < m; ++i) y[j] += Multiply(a[j * leading + i], x[i]);
    }
    return;
  }
  ForPieces<T>(m, k, offset, leading, [&](auto columns, int64_t i, int64_t rows, int64_t j, int64_t place) HWY_ATTR {
    constexpr int kColumns = decltype(columns)::value;
    const R* const first = reinterpret_cast<const R*>(a + j * leading + i);
    const R* const vector = reinterpret_cast<const R*>(x + i);
    R* const into = reinterpret_cast<R*>(y + j);
    if constexpr (kParts == 2) {
      MultiplyComplexColumns<kColumns>(rows, first, place, 2 * leading, vector, into);
    } else {
      MultiplyRealColumns<kColumns>(rows, first, place, leading, vector, into);
    }
  });
}

template <typename T>
ReductionLoops<T> Loops() {
  if constexpr (kNumberParts<T> == 2) {
    return {AddHermitian<lapack::Real<T>>, AddProduct<T>, MultiplyTransposed<T>};
  } else {
    return {AddSymmetric<T>, AddProduct<T>, MultiplyTransposed<T>};
  }
}

}  // namespace

ReductionLoops<float> BestReductionLoopsF32() { return Loops<float>(); }
ReductionLoops<double> BestReductionLoopsF64() { return Loops<double>(); }
ReductionLoops<std::complex<float>> BestReductionLoopsC64() { return Loops<std::complex<float>>(); }
ReductionLoops<std::complex<double>> BestReductionLoopsC128() { return Loops<std::complex<double>>(); }

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestReductionLoopsF32);
HWY_EXPORT(BestReductionLoopsF64);
HWY_EXPORT(BestReductionLoopsC64);
HWY_EXPORT(BestReductionLoopsC128);

template <>
ReductionLoops<float> GetReductionLoops<float>() {
  return HWY_DYNAMIC_DISPATCH(BestReductionLoopsF32)();
}
template <>
ReductionLoops<double> GetReductionLoops<double>() {
  return HWY_DYNAMIC_DISPATCH(BestReductionLoopsF64)();
}
template <>
ReductionLoops<std::complex<float>> GetReductionLoops<std::complex<float>>() {
  return HWY_DYNAMIC_DISPATCH(BestReductionLoopsC64)();
}
template <>
ReductionLoops<std::complex<double>> GetReductionLoops<std::complex<double>>() {
  return HWY_DYNAMIC_DISPATCH(BestReductionLoopsC128)();
}

}  // namespace tensord::cpu
#endif  // HWY_ONCE
