// Reductions of runs in registers. Included once per instruction set by loops.cc, which defines the operations,
// and the exact loops to fall back to.

#if defined(TENSORD_BACKENDS_CPU_REDUCE_RUNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_REDUCE_RUNS_INL_H_
#undef TENSORD_BACKENDS_CPU_REDUCE_RUNS_INL_H_
#else
#define TENSORD_BACKENDS_CPU_REDUCE_RUNS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/reduce/combine-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int64_t kRowBytes = 256;        // of a run, taken as one
inline constexpr int64_t kShortRunBytes = 1024;  // runs up to this are taken several at a time
inline constexpr int64_t kRowsInSequence = 16;   // as Cascade::kRadix: what one accumulator takes in a row
inline constexpr int64_t kPageBytes = 4096;      // at whose end the processor's prefetchers stop

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

// Returns a row of lanes with the `count` elements of a tail, halves combined as FoldLanes does; `sum` takes the tail
// too.
template <typename Op, typename T, class D>
HWY_INLINE T FoldRow(D d, const T* tail, int64_t count, const T* lanes, hn::Vec<D>& sum) {
  constexpr int kWidth = kRunLanes<T>;
  constexpr int kVectors = static_cast<int>(kRowBytes / sizeof(T)) / kWidth;
  hn::Vec<D> v[kVectors];
  for (int k = 0; k < kVectors; ++k) v[k] = hn::Load(d, lanes + k * kWidth);
  for (int k = 0; k < kVectors; ++k) {
    const int64_t left = count - k * kWidth;
    if (left <= 0) break;
    const auto term = left >= kWidth ? hn::LoadU(d, tail + k * kWidth) : LoadFirst(d, tail + k * kWidth, left, T{0});
    const auto mask = hn::FirstN(d, static_cast<size_t>(std::min<int64_t>(left, kWidth)));
    v[k] = hn::IfThenElse(mask, CombineVectors<Op>(d, v[k], term), v[k]);
    sum = hn::Add(sum, term);
  }
  for (int half = kVectors / 2; half >= 1; half /= 2) {
    for (int k = 0; k < half; ++k) v[k] = CombineVectors<Op>(d, v[k], v[k + half]);
  }
  return FoldVector<Op>(d, v[0]);
}

// One long run. Lane by lane the rows are added up eight at a time in a tree, as AccumulateGroup does; memory is read
// in its order. False if the result is not proven.
template <typename Op, typename T, typename FoldTail>
HWY_INLINE bool ReduceLongRun(const T* x, int64_t length, FoldTail fold_tail, T* result) {
  const RunTag<T> d;
  using V = hn::Vec<RunTag<T>>;
  constexpr int kWidth = kRunLanes<T>;
  constexpr int kRow = static_cast<int>(kRowBytes / sizeof(T));
  constexpr int kBlock = kRow / kWidth < 4 ? kRow / kWidth : 4;
  alignas(64) T lanes[kRow];
  V sum = hn::Zero(d);
  const int64_t rows = length / kRow;
  for (int block = 0; block < kRow; block += kBlock * kWidth) {
    const T* p = x + block;
    V total[kBlock];
    V sums[kBlock];
    for (int v = 0; v < kBlock; ++v) total[v] = hn::Set(d, Op::template Identity<T>());
    for (int v = 0; v < kBlock; ++v) sums[v] = hn::Zero(d);
    const auto at = [&](int row, int v) { return hn::LoadU(d, p + row * kRow + v * kWidth); };
    int64_t left = rows;
    if constexpr (kNeedsProof<Op, T>) {
      for (; left > 0; --left, p += kRow) {
        for (int v = 0; v < kBlock; ++v) {
          const V term = at(0, v);
          total[v] = CombineVectors<Op>(d, total[v], term);
          sums[v] = hn::Add(sums[v], term);
        }
      }
    } else {
      while (left > 0) {
        V part[kBlock];
        for (int v = 0; v < kBlock; ++v) part[v] = at(0, v);
        p += kRow;
        for (int64_t more = std::min<int64_t>(left, kRowsInSequence) - 1; more > 0; --more, p += kRow) {
          for (int v = 0; v < kBlock; ++v) part[v] = CombineVectors<Op>(d, part[v], at(0, v));
        }
        for (int v = 0; v < kBlock; ++v) total[v] = CombineVectors<Op>(d, total[v], part[v]);
        left -= kRowsInSequence;
      }
    }
    for (int v = 0; v < kBlock; ++v) {
      hn::Store(total[v], d, lanes + block + v * kWidth);
      sum = hn::Add(sum, sums[v]);
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    *result = FoldRow<Op>(d, x + rows * kRow, length % kRow, lanes, sum);
  } else {
    *result = fold_tail(x + rows * kRow, length % kRow, lanes);
  }
  if constexpr (kNeedsProof<Op, T>) return *result != T{0} && hn::AllTrue(d, hn::Eq(sum, sum));
  return true;
}

// Returns the sum of a long run of products, in the order in which ReduceLongRun adds; `tail` are those past the last
// whole row. kSquares: b is a, and read once.
template <typename Sum, bool kSquares, typename T>
HWY_INLINE T SumLongProducts(const T* a, const T* b, int64_t length, const T* tail) {
  const RunTag<T> d;
  using V = hn::Vec<RunTag<T>>;
  constexpr int kWidth = kRunLanes<T>;
  constexpr int kRow = static_cast<int>(kRowBytes / sizeof(T));
  constexpr int kBlock = kRow / kWidth < 4 ? kRow / kWidth : 4;
  alignas(64) T lanes[kRow];
  const int64_t rows = length / kRow;
  // The next page is asked for while this one is read, which the processor does not do by itself.
  constexpr int64_t kAhead = kPageBytes / static_cast<int64_t>(sizeof(T));
  const bool fetches = length >= 2 * kAhead;
  for (int block = 0; block < kRow; block += kBlock * kWidth) {
    int64_t at = block;
    const auto fetch = [&] {
      for (int64_t line = 0; line < kBlock * kWidth; line += 64 / static_cast<int64_t>(sizeof(T))) {
        __builtin_prefetch(a + at + kAhead + line);
        if (!kSquares) __builtin_prefetch(b + at + kAhead + line);
      }
    };
    const auto product = [&](int v) HWY_ATTR {
      const V factor = hn::LoadU(d, a + at + v * kWidth);
      return hn::Mul(factor, kSquares ? factor : hn::LoadU(d, b + at + v * kWidth));
    };
    V total[kBlock];
    for (int v = 0; v < kBlock; ++v) total[v] = hn::Zero(d);
    for (int64_t left = rows; left > 0; left -= kRowsInSequence) {
      V part[kBlock];
      if (fetches) fetch();
      for (int v = 0; v < kBlock; ++v) part[v] = product(v);
      at += kRow;
      for (int64_t more = std::min<int64_t>(left, kRowsInSequence) - 1; more > 0; --more, at += kRow) {
        if (fetches) fetch();
        for (int v = 0; v < kBlock; ++v) part[v] = hn::Add(part[v], product(v));
      }
      for (int v = 0; v < kBlock; ++v) total[v] = hn::Add(total[v], part[v]);
    }
    for (int v = 0; v < kBlock; ++v) hn::Store(total[v], d, lanes + block + v * kWidth);
  }
  V unused = hn::Zero(d);
  return FoldRow<Sum>(d, tail, length % kRow, lanes, unused);
}

// Lane by lane [a0∘a1, a2∘a3, …, b0∘b1, …].
template <typename Op, class D, class V>
HWY_INLINE V FoldNeighbours(D d, V a, V b) {
  return CombineVectors<Op>(d, hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
}

// `kCount` vectors, given by a function of their index, folded to one: neighbours by neighbours, as often as that
// takes.
template <typename Op, int kCount, class D, typename VectorAt>
HWY_INLINE hn::Vec<D> FoldVectors(D d, int first, const VectorAt& vector_at) {
  if constexpr (kCount == 1) {
    return vector_at(first);
  } else {
    const auto low = FoldVectors<Op, kCount / 2>(d, first, vector_at);
    const auto high = FoldVectors<Op, kCount / 2>(d, first + kCount / 2, vector_at);
    return FoldNeighbours<Op>(d, low, high);
  }
}

// Reduces as many short runs as a vector has lanes, or fewer: each is folded into kVirtualBytes of lanes, one row of
// them after the other, and these neighbour by neighbour. False if the results are not proven.
template <typename Op, typename T>
HWY_INLINE bool ReduceShortRuns(const T* x, int64_t length, int64_t step, int64_t runs, T* results) {
  const RunTag<T> d;
  using V = hn::Vec<RunTag<T>>;
  constexpr int kWidth = kRunLanes<T>;
  constexpr int kRow = static_cast<int>(kVirtualBytes / sizeof(T));
  const T identity = Op::template Identity<T>();
  V sum = hn::Zero(d);
  const auto seen = [&](V term) HWY_ATTR {
    if constexpr (kNeedsProof<Op, T>) sum = hn::Add(sum, term);
    return term;
  };
  const auto dense = [&](int v) HWY_ATTR { return seen(hn::LoadU(d, x + v * kWidth)); };
  V folded;
  if (length == 2 && step == 2 && runs == kWidth) {
    folded = FoldVectors<Op, 2>(d, 0, dense);
  } else if (length == 4 && kWidth >= 4 && step == 4 && runs == kWidth) {
    folded = FoldVectors<Op, 4>(d, 0, dense);
  } else if (length == 8 && kWidth >= 8 && step == 8 && runs == kWidth) {
    folded = FoldVectors<Op, 8>(d, 0, dense);
  } else {
    V parts[kRow / kWidth];
    for (int part = 0; part < kRow / kWidth; ++part) {
      const int64_t whole =
          std::max<int64_t>(0, (length - part * kWidth) / kRow + ((length - part * kWidth) % kRow >= kWidth));
      const int64_t rest = std::clamp<int64_t>(length - part * kWidth - whole * kRow, 0, kWidth);
      parts[part] = FoldVectors<Op, kWidth>(d, 0, [&](int run) HWY_ATTR {
        const T* p = x + std::min<int64_t>(run, runs - 1) * step + part * kWidth;
        if (whole == 0) return rest == 0 ? hn::Set(d, identity) : seen(LoadFirst(d, p, rest, identity));
        V total = seen(hn::LoadU(d, p));
        for (int64_t k = 1; k < whole; ++k) total = CombineVectors<Op>(d, total, seen(hn::LoadU(d, p + k * kRow)));
        if (rest > 0) total = CombineVectors<Op>(d, total, seen(LoadFirst(d, p + whole * kRow, rest, identity)));
        return total;
      });
    }
    for (int count = kRow / kWidth; count > 1; count /= 2) {
      for (int k = 0; k < count / 2; ++k) parts[k] = CombineVectors<Op>(d, parts[2 * k], parts[2 * k + 1]);
    }
    folded = parts[0];
  }
  folded = CombineVectors<Op>(d, hn::Set(d, identity), folded);
  if (runs == kWidth) {
    hn::StoreU(folded, d, results);
  } else {
    alignas(64) T buffer[kWidth];
    hn::Store(folded, d, buffer);
    std::copy(buffer, buffer + runs, results);
  }
  if constexpr (kNeedsProof<Op, T>) {
    return hn::AllTrue(d, hn::Eq(sum, sum)) && hn::AllFalse(d, hn::Eq(folded, hn::Zero(d)));
  }
  return true;
}

// `kRows` vectors, `step` elements apart, combined in a tree.
template <typename Op, int kRows, class D, typename T>
HWY_INLINE hn::Vec<D> TreeOfRows(D d, const T* x, int64_t step) {
  if constexpr (kRows == 1) {
    return hn::LoadU(d, x);
  } else {
    const auto low = TreeOfRows<Op, kRows / 2>(d, x, step);
    return CombineVectors<Op>(d, low, TreeOfRows<Op, kRows / 2>(d, x + kRows / 2 * step, step));
  }
}

// Combines accumulators[i] with x[i], x[i + step], … (`kRows` of them), for whole vectors of them, from `i` on, as long
// as the results are proven; how far it came. Fetches as much as it reads, in the order of memory, from x + ahead on.
template <typename Op, int kRows, typename T>
HWY_INLINE int64_t AccumulateVectors(const T* x, int64_t step, int64_t ahead, int64_t i, int64_t count,
                                     T* HWY_RESTRICT accumulators) {
  const RunTag<T> d;
  constexpr int64_t kWidth = kRunLanes<T>;
  for (; i + kWidth <= count; i += kWidth) {
    if (ahead != 0) {
      for (int row = 0; row < kRows; ++row) __builtin_prefetch(x + ahead + i * kRows + row * kWidth, 0, 2);
    }
    auto total = hn::LoadU(d, accumulators + i);
    if constexpr (kNeedsProof<Op, T>) {
      auto sum = total;
      for (int row = 0; row < kRows; ++row) {
        const auto term = hn::LoadU(d, x + i + row * step);
        total = CombineVectors<Op>(d, total, term);
        sum = hn::Add(sum, term);
      }
      const auto unproven = hn::Or(hn::IsNaN(sum), hn::Eq(total, hn::Zero(d)));
      if (HWY_UNLIKELY(!hn::AllFalse(d, unproven))) break;
    } else {
      total = CombineVectors<Op>(d, total, TreeOfRows<Op, kRows>(d, x + i, step));
    }
    hn::StoreU(total, d, accumulators + i);
  }
  return i;
}

#endif  // not for scalars

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
