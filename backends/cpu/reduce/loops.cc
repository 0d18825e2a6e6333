#include "backends/cpu/reduce/loops.h"

#include <cstddef>
#include <limits>
#include <type_traits>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/math/complex_product-inl.h"
#include "backends/cpu/reduce/runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

// The loops are plain, for the compiler to vectorise once per instruction set, except for complex products.

template <typename Real>
struct Pair {
  using Part = Real;
  Real re, im;
};

template <typename T>
concept IsPair = requires {
  typename T::Part;
};

template <typename T>
HWY_INLINE bool IsNan(T x) {
  return x != x;
}
template <typename Real>
HWY_INLINE bool IsNan(Pair<Real> z) {
  return z.re != z.re || z.im != z.im;
}

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

struct Sum {
  static constexpr bool kIsMax = false, kIsMin = false, kIsProduct = false;
  template <typename T>
  static constexpr T Identity() {
    return T{0};
  }
  template <typename T>
  static HWY_INLINE T Combine(T a, T b) {
    return a + b;
  }
};

struct Product {
  static constexpr bool kIsMax = false, kIsMin = false, kIsProduct = true;
  template <typename T>
  static constexpr T Identity() {
    return T{1};
  }
  template <typename T>
  static HWY_INLINE T Combine(T a, T b) {
    return a * b;
  }
  template <typename Real>
  static HWY_INLINE Pair<Real> Combine(Pair<Real> a, Pair<Real> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};

// Returns the value that compares below (kSign 1) or above (kSign -1) everything else.
template <typename T, int kSign>
constexpr T Extreme() {
  if constexpr (IsPair<T>) {
    return {Extreme<typename T::Part, kSign>(), Extreme<typename T::Part, kSign>()};
  } else if constexpr (std::is_floating_point_v<T>) {
    return -kSign * std::numeric_limits<T>::infinity();
  } else {
    return kSign > 0 ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
}

template <int kSign>
struct Extremum {
  static constexpr bool kIsMax = kSign > 0, kIsMin = kSign < 0, kIsProduct = false;
  template <typename T>
  static constexpr T Identity() {
    return Extreme<T, kSign>();
  }
  template <typename T>
  static HWY_INLINE bool Wins(T a, T b) {
    return kSign > 0 ? a > b : a < b;
  }
  template <typename T>
  static HWY_INLINE T Combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      // +0 is above -0: of two equal numbers only zeros differ in a bit.
      const auto x = __builtin_bit_cast(BitsOf<T>, a);
      const auto y = __builtin_bit_cast(BitsOf<T>, b);
      const T equal = __builtin_bit_cast(T, static_cast<BitsOf<T>>(kSign > 0 ? x & y : x | y));
      T result = Wins(a, b) ? a : b;
      result = a == b ? equal : result;
      return IsNan(a) ? a : result;
    } else {
      return Wins(a, b) ? a : b;
    }
  }
  template <typename Real>
  static HWY_INLINE Pair<Real> Combine(Pair<Real> a, Pair<Real> b) {
    if (IsNan(a) || IsNan(b)) return {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::quiet_NaN()};
    if (a.re != b.re) return Wins(a.re, b.re) ? a : b;
    return Wins(b.im, a.im) ? b : a;
  }
};

struct And {
  template <typename T>
  static constexpr T Identity() {
    return T{1};
  }
  template <typename T>
  static HWY_INLINE T Combine(T a, T b) {
    return a & b;
  }
};

struct Or {
  template <typename T>
  static constexpr T Identity() {
    return T{0};
  }
  template <typename T>
  static HWY_INLINE T Combine(T a, T b) {
    return a | b;
  }
};

template <typename Op, typename T, int kRows>
HWY_INLINE T Tree(const T* x, int64_t step) {
  if constexpr (kRows == 1) {
    return *x;
  } else {
    return Op::Combine(Tree<Op, T, kRows / 2>(x, step), Tree<Op, T, kRows / 2>(x + kRows / 2 * step, step));
  }
}

#if HWY_TARGET != HWY_SCALAR
template <int kRows, class D>
HWY_INLINE hn::Vec<D> ProductTree(D d, const hn::TFromD<D>* x, int64_t step) {
  if constexpr (kRows == 1) {
    return hn::LoadU(d, x);
  } else {
    return ComplexProduct(d, ProductTree<kRows / 2>(d, x, step), ProductTree<kRows / 2>(d, x + kRows / 2 * step, step));
  }
}

// Adds to `count` complex accumulators; `x` and `step` are in reals.
template <int kRows, typename Real>
HWY_INLINE void AccumulateProducts(const Real* x, int64_t step, int64_t count, Real* HWY_RESTRICT accumulators) {
  const hn::ScalableTag<Real> d;
  const hn::CappedTag<Real, 2> pair;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= 2 * count; i += lanes) {
    const auto tree = ProductTree<kRows>(d, x + i, step);
    hn::StoreU(ComplexProduct(d, hn::LoadU(d, accumulators + i), tree), d, accumulators + i);
  }
  for (; i < 2 * count; i += 2) {
    const auto tree = ProductTree<kRows>(pair, x + i, step);
    hn::StoreU(ComplexProduct(pair, hn::LoadU(pair, accumulators + i), tree), pair, accumulators + i);
  }
}
#endif

// True if there are loops in registers for runs of these elements.
template <typename Op, typename T>
constexpr bool kHasRegisterRuns =
    HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE && !IsPair<T> && !std::is_same_v<T, uint8_t>;

template <typename Op, typename T, int kRows>
HWY_INLINE void AccumulateEach(const T* x, int64_t step, int64_t begin, int64_t end, T* HWY_RESTRICT accumulators) {
  for (int64_t i = begin; i < end; ++i) {
    accumulators[i] = Op::Combine(accumulators[i], Tree<Op, T, kRows>(x + i, step));
  }
}

// Rows that follow one another closely: fetches as much as it reads, from `ahead` elements further on; 0: nothing.
template <typename Op, typename T, int kRows>
HWY_INLINE void AccumulateGroup(const T* x, int64_t step, int64_t count, T* HWY_RESTRICT accumulators,
                                [[maybe_unused]] int64_t ahead = 0) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (IsPair<T> && std::is_same_v<Op, Product>) {
    return AccumulateProducts<kRows>(&x->re, 2 * step, count, &accumulators->re);
  }
#endif
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  if constexpr (kHasRegisterRuns<Op, T>) {
    constexpr int64_t kWidth = kRunLanes<T>;
    int64_t i = AccumulateVectors<Op, kRows>(x, step, ahead, 0, count, accumulators);
    while (i + kWidth <= count) {
      AccumulateEach<Op, T, kRows>(x, step, i, i + kWidth, accumulators);
      i = AccumulateVectors<Op, kRows>(x, step, ahead, i + kWidth, count, accumulators);
    }
    return AccumulateEach<Op, T, kRows>(x, step, i, count, accumulators);
  }
#endif
  if constexpr (!(IsPair<T> && std::is_same_v<Op, Product>) || HWY_TARGET == HWY_SCALAR) {
    AccumulateEach<Op, T, kRows>(x, step, 0, count, accumulators);
  }
}

// Less is in the second-level cache where it comes from memory at all.
constexpr int64_t kFetchedBytes = int64_t{128} << 10;

template <typename Op, typename T>
void Accumulate(const void* x_bytes, int64_t step, int64_t rows, int64_t count, void* accumulator_bytes) {
  const T* x = static_cast<const T*>(x_bytes);
  T* accumulators = static_cast<T*>(accumulator_bytes);
  // Eight rows that are read side by side are no stream that the hardware fetches ahead.
  constexpr int64_t kRowsAhead = 16;
  const bool is_long = step == count && rows * step * static_cast<int64_t>(sizeof(T)) >= kFetchedBytes;
  for (; rows >= 8; rows -= 8, x += 8 * step) {
    const bool fetches = is_long && rows >= kRowsAhead + 8;
    AccumulateGroup<Op, T, 8>(x, step, count, accumulators, fetches ? kRowsAhead * step : 0);
  }
  if (rows & 4) {
    AccumulateGroup<Op, T, 4>(x, step, count, accumulators);
    x += 4 * step;
  }
  if (rows & 2) {
    AccumulateGroup<Op, T, 2>(x, step, count, accumulators);
    x += 2 * step;
  }
  if (rows & 1) AccumulateGroup<Op, T, 1>(x, step, count, accumulators);
}

template <typename Op, typename T, int64_t kCount>
HWY_INLINE T FoldLanes(T* lanes) {
  if constexpr (kCount > 1) {
    AccumulateGroup<Op, T, 1>(lanes + kCount / 2, 0, kCount / 2, lanes);
    return FoldLanes<Op, T, kCount / 2>(lanes);
  } else {
    return lanes[0];
  }
}

// One run; the order is that of ReduceLongRun.
template <typename Op, typename T>
HWY_INLINE T ReduceRun(const T* x, int64_t length) {
  constexpr int64_t kLanes = kRowBytes / static_cast<int64_t>(sizeof(T));
  alignas(64) T lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = Op::template Identity<T>();
  int64_t rows = length / kLanes;
  for (; rows >= 8; rows -= 8, x += 8 * kLanes) AccumulateGroup<Op, T, 8>(x, kLanes, kLanes, lanes);
  for (; rows >= 2; rows -= 2, x += 2 * kLanes) AccumulateGroup<Op, T, 2>(x, kLanes, kLanes, lanes);
  for (; rows >= 1; rows -= 1, x += kLanes) AccumulateGroup<Op, T, 1>(x, kLanes, kLanes, lanes);
  AccumulateGroup<Op, T, 1>(x, kLanes, length % kLanes, lanes);
  return FoldLanes<Op, T, kLanes>(lanes);
}

template <typename Op, typename T>
void ReduceRuns(const void* x_bytes, int64_t length, int64_t step, int64_t runs, void* result_bytes) {
  const T* x = static_cast<const T*>(x_bytes);
  T* results = static_cast<T*>(result_bytes);
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  if constexpr (kHasRegisterRuns<Op, T>) {
    if (length * static_cast<int64_t>(sizeof(T)) <= kShortRunBytes) {
      constexpr int64_t kWidth = kRunLanes<T>;
      for (int64_t r = 0; r < runs; r += kWidth) {
        const int64_t some = std::min(kWidth, runs - r);
        if (ReduceShortRuns<Op>(x + r * step, length, step, some, results + r)) continue;
        for (int64_t k = r; k < r + some; ++k) results[k] = ReduceRun<Op>(x + k * step, length);
      }
      return;
    }
    const auto fold_tail = [](const T* tail, int64_t count, T* lanes) {
      constexpr int64_t kLanes = kRowBytes / static_cast<int64_t>(sizeof(T));
      AccumulateGroup<Op, T, 1>(tail, kLanes, count, lanes);
      return FoldLanes<Op, T, kLanes>(lanes);
    };
    for (int64_t r = 0; r < runs; ++r) {
      if (!ReduceLongRun<Op>(x + r * step, length, fold_tail, results + r)) {
        results[r] = ReduceRun<Op>(x + r * step, length);
      }
    }
    return;
  }
#endif
  for (int64_t r = 0; r < runs; ++r) results[r] = ReduceRun<Op>(x + r * step, length);
}

template <typename T>
void MultiplyEach(const T* a, const T* b, int64_t count, T* products) {
  for (int64_t i = 0; i < count; ++i) products[i] = a[i] * b[i];
}

template <typename T>
HWY_NOINLINE void SumRun(const T* x, int64_t length, void* result) {
  ReduceRuns<Sum, T>(x, length, length, 1, result);
}

template <typename T>
void SumProducts(const void* a_bytes, const void* b_bytes, int64_t length, void* result) {
  const T* a = static_cast<const T*>(a_bytes);
  const T* b = static_cast<const T*>(b_bytes);
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  if (length * static_cast<int64_t>(sizeof(T)) > kShortRunBytes) {
    constexpr int64_t kRow = kRowBytes / static_cast<int64_t>(sizeof(T));
    alignas(64) T tail[kRow];
    const int64_t left = length % kRow;
    MultiplyEach(a + length - left, b + length - left, left, tail);
    *static_cast<T*>(result) =
        a == b ? SumLongProducts<Sum, true>(a, a, length, tail) : SumLongProducts<Sum, false>(a, b, length, tail);
    return;
  }
  alignas(64) T products[kShortRunBytes / sizeof(T)];
#else
  alignas(64) T products[kMaxRunBytes / sizeof(T)];
#endif
  MultiplyEach(a, b, length, products);
  SumRun(products, length, result);
}

template <typename Op, typename T>
void Clear(void* accumulator_bytes, int64_t count) {
  T* accumulators = static_cast<T*>(accumulator_bytes);
  for (int64_t i = 0; i < count; ++i) accumulators[i] = Op::template Identity<T>();
}

template <typename Op, typename T>
ReduceLoops Loops() {
  ReduceLoops loops = {.clear = Clear<Op, T>, .accumulate = Accumulate<Op, T>, .reduce_runs = ReduceRuns<Op, T>};
  if constexpr (std::is_same_v<Op, Sum> && std::is_floating_point_v<T>) loops.sum_products = SumProducts<T>;
  loops.has_short_runs = kHasRegisterRuns<Op, T>;
  return loops;
}

// Integers wrap where they are unsigned; order needs the sign.
template <typename Unsigned, typename Signed>
ReduceLoops NumberLoops(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return Loops<Sum, Unsigned>();
    case ReduceOp::kProduct:
      return Loops<Product, Unsigned>();
    case ReduceOp::kMax:
      return Loops<Extremum<1>, Signed>();
    case ReduceOp::kMin:
      return Loops<Extremum<-1>, Signed>();
    default:
      return {};
  }
}

template <typename Real>
ReduceLoops ComplexLoops(ReduceOp op) {
  switch (op) {
    case ReduceOp::kProduct:
      return Loops<Product, Pair<Real>>();
    case ReduceOp::kMax:
      return Loops<Extremum<1>, Pair<Real>>();
    case ReduceOp::kMin:
      return Loops<Extremum<-1>, Pair<Real>>();
    default:
      return {};
  }
}

}  // namespace

ReduceLoops BestReduceLoops(ReduceOp op, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return op == ReduceOp::kAnd ? Loops<And, uint8_t>() : op == ReduceOp::kOr ? Loops<Or, uint8_t>() : ReduceLoops();
    case DType::kI32:
      return NumberLoops<uint32_t, int32_t>(op);
    case DType::kI64:
      return NumberLoops<uint64_t, int64_t>(op);
    case DType::kF32:
      return NumberLoops<float, float>(op);
    case DType::kF64:
      return NumberLoops<double, double>(op);
    case DType::kC64:
      return ComplexLoops<float>(op);
    case DType::kC128:
      return ComplexLoops<double>(op);
    default:
      return {};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestReduceLoops);

ReduceLoops GetReduceLoops(ReduceOp op, DType dtype) { return HWY_DYNAMIC_DISPATCH(BestReduceLoops)(op, dtype); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
