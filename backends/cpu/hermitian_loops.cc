#include "backends/cpu/hermitian_loops.h"

#include <algorithm>

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

template <int kColumns, typename T>
HWY_NOINLINE void AddSymmetricColumns(int64_t n, int64_t j, const T* HWY_RESTRICT a, int64_t leading,
                                      const T* HWY_RESTRICT x, T* HWY_RESTRICT y) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
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
  int64_t i = j + kColumns;
  for (; i + lanes <= n; i += lanes) {
    const V other = hn::LoadU(d, x + i);
    V sum = hn::LoadU(d, y + i);
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      const V entry = hn::LoadU(d, columns + c * leading + i);
      sum = hn::MulAdd(entry, factors[c], sum);
      sums[c] = hn::MulAdd(entry, other, sums[c]);
    }
    hn::StoreU(sum, d, y + i);
  }
  for (; i < n; ++i) {
    for (int c = 0; c < kColumns; ++c) {
      const T entry = columns[c * leading + i];
      y[i] += entry * x[j + c];
      dots[c] += entry * x[i];
    }
  }
  for (int c = 0; c < kColumns; ++c) y[j + c] += hn::GetLane(hn::SumOfLanes(d, sums[c])) + dots[c];
}

template <typename T>
void AddSymmetric(int64_t n, int64_t begin, int64_t end, const T* a, int64_t leading, const T* x, T* y) {
  int64_t j = begin;
  for (; j + 4 <= end; j += 4) AddSymmetricColumns<4>(n, j, a, leading, x, y);
  for (; j < end; ++j) AddSymmetricColumns<1>(n, j, a, leading, x, y);
}

// Column c of the block of `count` columns on the diagonal, by parts: its entries start at `column`, those of x and y
// with the block.
template <typename R>
HWY_INLINE void AddDiagonalBlockColumn(int c, int count, const R* column, const R* x, R* y) {
  for (int part = 0; part < 2; ++part) y[2 * c + part] += column[2 * c] * x[2 * c + part];
  for (int r = c + 1; r < count; ++r) {
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
HWY_NOINLINE void AddHermitianColumns(int64_t n, int64_t j, const R* HWY_RESTRICT a, int64_t leading,
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
  const auto step = [&](int64_t i, auto load, V* sum) HWY_ATTR {
    const V other = load(x + i);
    const V swapped = hn::Reverse2(d, other);
    const V turned = hn::OddEven(hn::Neg(swapped), swapped);  // imaginary part, -real part
    V crossed = hn::Zero(d);
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      const V entry = load(columns + 2 * c * leading + i);
      *sum = hn::MulAdd(entry, reals[c], *sum);
      crossed = hn::MulAdd(entry, imaginaries[c], crossed);
      real_sums[c] = hn::MulAdd(entry, other, real_sums[c]);
      imaginary_sums[c] = hn::MulAdd(entry, turned, imaginary_sums[c]);
    }
    crossed = hn::Reverse2(d, crossed);
    *sum = hn::OddEven(hn::Add(*sum, crossed), hn::Sub(*sum, crossed));
  };
  const int64_t end = 2 * n;
  int64_t i = 2 * (j + kColumns);
  for (; i + lanes <= end; i += lanes) {
    V sum = hn::LoadU(d, y + i);
    step(
        i, [&](const R* from) HWY_ATTR { return hn::LoadU(d, from); }, &sum);
    hn::StoreU(sum, d, y + i);
  }
  if (i < end) {
    alignas(64) R rest[16] = {};
    const auto load = [&](const R* from) HWY_ATTR {
      alignas(64) R numbers[16] = {};
      std::copy_n(from, end - i, numbers);
      return hn::Load(d, numbers);
    };
    V sum = load(y + i);
    step(i, load, &sum);
    hn::Store(sum, d, rest);
    std::copy_n(rest, end - i, y + i);
  }
  for (int c = 0; c < kColumns; ++c) {
    R* const into = y + 2 * (j + c);
    into[0] += hn::GetLane(hn::SumOfLanes(d, real_sums[c]));
    into[1] += hn::GetLane(hn::SumOfLanes(d, imaginary_sums[c]));
    AddDiagonalBlockColumn(c, kColumns, columns + 2 * (c * leading + j), x + 2 * j, y + 2 * j);
  }
}

template <typename R>
void AddHermitian(int64_t n, int64_t begin, int64_t end, const std::complex<R>* a, int64_t leading,
                  const std::complex<R>* x, std::complex<R>* y) {
  const auto parts = [](auto* numbers) { return reinterpret_cast<const R*>(numbers); };
  R* const into = reinterpret_cast<R*>(y);
  int64_t j = begin;
  for (; j + 4 <= end; j += 4) AddHermitianColumns<4>(n, j, parts(a), leading, parts(x), into);
  for (; j < end; ++j) AddHermitianColumns<1>(n, j, parts(a), leading, parts(x), into);
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
