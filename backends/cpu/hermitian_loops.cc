#include "backends/cpu/hermitian_loops.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/number_parts.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/hermitian_loops.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::CappedTag<T, 16>;

// Whether part of a vector is read and written as fast as all of it.
constexpr bool kHasMasks = HWY_TARGET <= HWY_AVX2;

// The first `count` lanes; nothing beyond is read.
template <typename T>
HWY_INLINE hn::Vec<Tag<T>> LoadSome(const T* x, int64_t count) {
  const Tag<T> d;
  if constexpr (kHasMasks) return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, x);
  alignas(64) T buffer[16] = {};
  std::copy_n(x, count, buffer);
  return hn::Load(d, buffer);
}

template <typename T>
HWY_INLINE void StoreSome(hn::Vec<Tag<T>> value, int64_t count, T* y) {
  const Tag<T> d;
  if constexpr (kHasMasks) return hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count)), d, y);
  alignas(64) T buffer[16];
  hn::Store(value, d, buffer);
  std::copy_n(buffer, count, y);
}

// Calls step(i, count) for vectors from `begin` to `end`, of which the first is part of one where that makes the others
// aligned: `offset` is what `begin` counts from an aligned place, -1 if nothing is known.
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
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](const T* from, int64_t count)
                        HWY_ATTR { return count == lanes ? hn::LoadU(d, from) : LoadSome(from, count); };
  ForVectors<T>(j + kColumns, n, offset, [&](int64_t i, int64_t count) HWY_ATTR {
    const V other = load(x + i, count);
    V sum = load(y + i, count);
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      const V entry = load(columns + c * leading + i, count);
      sum = hn::MulAdd(entry, factors[c], sum);
      sums[c] = hn::MulAdd(entry, other, sums[c]);
    }
    if (count == lanes) {
      hn::StoreU(sum, d, y + i);
    } else {
      StoreSome(sum, count, y + i);
    }
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
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const R* const columns = a + 2 * j * leading;
  V reals[kColumns], imaginaries[kColumns];         // of the numbers of x that meet the columns
  V real_sums[kColumns], imaginary_sums[kColumns];  // of the columns' products with x
  for (int c = 0; c < kColumns; ++c) {
    reals[c] = hn::Set(d, x[2 * (j + c)]);
    imaginaries[c] = hn::Set(d, x[2 * (j + c) + 1]);
    real_sums[c] = imaginary_sums[c] = hn::Zero(d);
  }
  const auto load = [&](const R* from, int64_t count)
                        HWY_ATTR { return count == lanes ? hn::LoadU(d, from) : LoadSome(from, count); };
  ForVectors<R>(2 * (j + kColumns), 2 * n, offset, [&](int64_t i, int64_t count) HWY_ATTR {
    const V other = load(x + i, count);
    const V swapped = hn::Reverse2(d, other);
    const V turned = hn::OddEven(hn::Neg(swapped), swapped);  // imaginary part, -real part
    V sum = load(y + i, count), crossed = hn::Zero(d);
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      const V entry = load(columns + 2 * c * leading + i, count);
      sum = hn::MulAdd(entry, reals[c], sum);
      crossed = hn::MulAdd(entry, imaginaries[c], crossed);
      real_sums[c] = hn::MulAdd(entry, other, real_sums[c]);
      imaginary_sums[c] = hn::MulAdd(entry, turned, imaginary_sums[c]);
    }
    crossed = hn::Reverse2(d, crossed);
    sum = hn::OddEven(hn::Add(sum, crossed), hn::Sub(sum, crossed));
    if (count == lanes) {
      hn::StoreU(sum, d, y + i);
    } else {
      StoreSome(sum, count, y + i);
    }
  });
  for (int c = 0; c < kColumns; ++c) {
    R* const into = y + 2 * (j + c);
    into[0] += hn::GetLane(hn::SumOfLanes(d, real_sums[c]));
    into[1] += hn::GetLane(hn::SumOfLanes(d, imaginary_sums[c]));
    AddDiagonalBlockColumn(c, kColumns, columns + 2 * (c * leading + j), x + 2 * j, y + 2 * j);
  }
}

// Columns four at a time. Where they begin at aligned places, it is known how far rows are from one: each column is as
// far as the others.
template <typename T, typename Add>
HWY_INLINE void ForColumns(int64_t begin, int64_t end, int64_t offset, int64_t leading, const Add& add) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<lapack::Real<T>>()));
  const auto place = [&](int64_t row) {
    return leading * kNumberParts<T> % lanes == 0 ? (offset + row) * kNumberParts<T> % lanes : -1;
  };
  int64_t j = begin;
  for (; j + 4 <= end; j += 4) add(std::integral_constant<int, 4>(), j, place(j + 4));
  for (; j < end; ++j) add(std::integral_constant<int, 1>(), j, place(j + 1));
}

template <typename T>
void AddSymmetric(int64_t n, int64_t begin, int64_t end, const T* a, int64_t offset, int64_t leading, const T* x,
                  T* y) {
  ForColumns<T>(begin, end, offset, leading, [&](auto columns, int64_t j, int64_t place) HWY_ATTR {
    AddSymmetricColumns<decltype(columns)::value>(n, j, a, place, leading, x, y);
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
  ForColumns<std::complex<R>>(begin, end, offset, leading, [&](auto columns, int64_t j, int64_t place) HWY_ATTR {
    AddHermitianColumns<decltype(columns)::value>(n, j, matrix, place, leading, vector, into);
  });
}

}  // namespace

HermitianLoops<float> BestHermitianLoopsF32() { return {AddSymmetric<float>}; }
HermitianLoops<double> BestHermitianLoopsF64() { return {AddSymmetric<double>}; }
HermitianLoops<std::complex<float>> BestHermitianLoopsC64() { return {AddHermitian<float>}; }
HermitianLoops<std::complex<double>> BestHermitianLoopsC128() { return {AddHermitian<double>}; }

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestHermitianLoopsF32);
HWY_EXPORT(BestHermitianLoopsF64);
HWY_EXPORT(BestHermitianLoopsC64);
HWY_EXPORT(BestHermitianLoopsC128);

template <>
HermitianLoops<float> GetHermitianLoops<float>() {
  return HWY_DYNAMIC_DISPATCH(BestHermitianLoopsF32)();
}
template <>
HermitianLoops<double> GetHermitianLoops<double>() {
  return HWY_DYNAMIC_DISPATCH(BestHermitianLoopsF64)();
}
template <>
HermitianLoops<std::complex<float>> GetHermitianLoops<std::complex<float>>() {
  return HWY_DYNAMIC_DISPATCH(BestHermitianLoopsC64)();
}
template <>
HermitianLoops<std::complex<double>> GetHermitianLoops<std::complex<double>>() {
  return HWY_DYNAMIC_DISPATCH(BestHermitianLoopsC128)();
}

}  // namespace tensord::cpu
#endif  // HWY_ONCE
