#include "backends/cpu/linalg/divided/bidiagonal_vectors.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "backends/cpu/linalg/divided/merge_tree.h"
#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/secular.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {

// One call: U's columns are vectors, and so are V's.
template <typename R>
class BidiagonalVectors<R>::Call {
 public:
  Call(const BidiagonalVectors& plan, R* diagonal, R* beside, const Vectors& u, const Vectors& v, char* scratch,
       ThreadPool& pool)
      : work_{.n = plan.n_,
              .d = diagonal,
              .e = beside,
              .u = u,
              .v = v,
              .pool = &pool,
              .order = At<int32_t>(scratch, plan.order_),
              .group = At<int32_t>(scratch, plan.group_),
              .secular = At<int32_t>(scratch, plan.secular_),
              .types = At<int8_t>(scratch, plan.types_),
              .line = At<R>(scratch, plan.line_),
              .poles = At<R>(scratch, plan.poles_),
              .weights = At<R>(scratch, plan.weights_),
              .deflated = At<R>(scratch, plan.deflated_),
              .packed_u = At<R>(scratch, plan.packed_u_),
              .packed_v = At<R>(scratch, plan.packed_v_),
              .factor_u = At<R>(scratch, plan.factor_u_),
              .factor_v = At<R>(scratch, plan.factor_v_),
              .product = scratch + plan.product_,
              .product_bytes = plan.product_bytes_} {}

  int64_t Run();
  // Puts the values in order, and the vectors into their places: one matrix's as columns of itself, the other one's as
  // rows.
  void Sort(const Vectors& columns, const Vectors& others, const Vectors& rows);

 private:
  template <typename T>
  static T* At(char* scratch, int64_t place) {
    return reinterpret_cast<T*>(scratch + place);
  }
  void SolveBlock(int64_t begin, int64_t end);
  void SolveLeaf(int64_t begin, int64_t end, bool has_more_columns);

  BidiagonalWork<R> work_;
};

template <typename R>
void BidiagonalVectors<R>::Call::SolveLeaf(int64_t begin, int64_t end, bool has_more_columns) {
  const int64_t rows = end - begin, columns = rows + (has_more_columns ? 1 : 0);
  R* const transposed = work_.factor_v + begin * FactorColumns(work_.n);
  R* const u = work_.u.numbers + begin * (work_.u.leading + 1);
  R* const v = work_.v.numbers + begin * (work_.v.leading + 1);
  std::fill_n(transposed, columns * columns, R(0));
  SetDiagonal(columns, columns, R(1), transposed);
  for (int64_t i = 0; i < rows; ++i) u[i * (work_.u.leading + 1)] = 1;
  const int64_t info = lapack::LeafSvd(rows, has_more_columns, work_.d + begin, work_.e + begin, transposed, u,
                                       work_.u.leading, work_.factor_u + begin * FactorColumns(work_.n));
  if (info != 0) KeepFirstFailure(end, &work_.failed);
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < columns; ++i) v[j * work_.v.leading + i] = transposed[i * columns + j];
  }
}

// A block without zeros beside the diagonal.
template <typename R>
void BidiagonalVectors<R>::Call::SolveBlock(int64_t begin, int64_t end) {
  // Beyond the last row a tree has one more, which would be taken out behind it.
  const MergeTree tree(begin, end - begin + 1);
  const auto rows_end = [&](int64_t leaf) { return tree.Bound(leaf) - 1; };
  work_.pool->ParallelFor(tree.leaves(), [&](int64_t leaf) {
    if (!StopRequested()) SolveLeaf(tree.Bound(leaf), rows_end(leaf + 1), rows_end(leaf + 1) < end);
  });
  if (StopRequested()) return;
  tree.ForEachMerge(work_.failed, *work_.pool, [&](const LeafHalves& halves) {
    BidiagonalMerge<R>(&work_, {.begin = tree.Bound(halves.begin),
                                .middle = rows_end(halves.middle),
                                .end = rows_end(halves.end),
                                .has_more_columns = rows_end(halves.end) < end})
        .Run();
  });
}

template <typename R>
void BidiagonalVectors<R>::Call::Sort(const Vectors& columns, const Vectors& others, const Vectors& rows) {
  std::iota(work_.group, work_.group + work_.n, 0);
  std::sort(work_.group, work_.group + work_.n,
            [this](int32_t a, int32_t b) { return work_.d[a] != work_.d[b] ? work_.d[a] > work_.d[b] : a < b; });
  for (int64_t j = 0; j < work_.n; ++j) work_.line[j] = work_.d[work_.group[j]];
  std::copy_n(work_.line, work_.n, work_.d);
  const auto in_blocks = [&](auto each) {
    return work_.pool->ParallelForBlocks(work_.n, kCopiesOfTask, [&](int64_t begin, int64_t end) {
      for (int64_t j = 0; j < work_.n && !StopRequested(); ++j) each(j, begin, end);
    });
  };
  const auto take = [&](int64_t j, int64_t begin, int64_t end) {
    const R* const from = columns.numbers + work_.group[j] * columns.leading;
    std::copy(from + begin, from + end, work_.packed_u + j * work_.n + begin);
  };
  const auto put = [&](int64_t j, int64_t begin, int64_t end) {
    const R* const from = work_.packed_u + j * work_.n;
    std::copy(from + begin, from + end, columns.numbers + j * columns.leading + begin);
  };
  const auto transpose = [&](int64_t j, int64_t begin, int64_t end) {
    const R* const from = others.numbers + work_.group[j] * others.leading;
    for (int64_t i = begin; i < end; ++i) rows.numbers[i * rows.leading + j] = from[i];
  };
  if (in_blocks(take) && in_blocks(put)) in_blocks(transpose);
}

template <typename R>
int64_t BidiagonalVectors<R>::Call::Run() {
  work_.pool->ParallelForBlocks(work_.n, kCopiesOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      std::fill_n(work_.u.numbers + j * work_.u.leading, work_.n, R(0));
      std::fill_n(work_.v.numbers + j * work_.v.leading, work_.n, R(0));
    }
  });
  const R largest = work_.n > 0 ? std::max(LargestOf(work_.d, work_.n), LargestOf(work_.e, work_.n - 1)) : R(0);
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  ScaleBy(-exponent, work_.d, work_.n);
  ScaleBy(-exponent, work_.e, work_.n - 1);
  // A number that vanishes beside the largest one counts as zero beside the diagonal, and is raised to `least` on it.
  const R least = R(0.9) * kRounding<R>;
  for (int64_t i = 0; i < work_.n && largest > 0; ++i) {
    if (std::abs(work_.d[i]) < least) work_.d[i] = std::copysign(least, work_.d[i]);
  }
  for (int64_t begin = 0, end = 1; begin < work_.n; begin = end++) {
    if (StopRequested()) return 0;
    while (end < work_.n && std::abs(work_.e[end - 1]) >= least) ++end;
    SolveBlock(begin, end);
    if (const int64_t failed = work_.failed.load(std::memory_order_relaxed); failed != 0) return failed;
  }
  ScaleBy(exponent, work_.d, work_.n);
  return 0;
}

template <typename R>
BidiagonalVectors<R>::BidiagonalVectors(int64_t n) : n_(n) {
  for (int64_t* place : {&order_, &group_, &secular_}) *place = layout_.Add<int32_t>(n);
  types_ = layout_.Add<int8_t>(n);
  for (int64_t* place : {&line_, &poles_, &weights_, &deflated_}) *place = layout_.Add<R>(n);
  for (int64_t* place : {&other_, &packed_u_, &packed_v_}) *place = layout_.Add<R>(n * n);
  const int64_t factor = n * FactorColumns(n);
  for (int64_t* place : {&factor_u_, &factor_v_}) *place = layout_.Add<R>(factor);
  if (n >= kSharedMergeRows) product_bytes_ = SplitColumns<R>::ProductBytes(n, FactorColumns(n));
  product_ = layout_.Add<char>(product_bytes_);
}

template <typename R>
int64_t BidiagonalVectors<R>::Run(bool is_upper, R* diagonal, R* beside, const Vectors& u, const Vectors& v_transposed,
                                  char* scratch, ThreadPool& pool) const {
  const Vectors other{reinterpret_cast<R*>(scratch + other_), n_};
  // A lower matrix is the transpose of an upper one, whose vectors change sides.
  Call call(*this, diagonal, beside, is_upper ? u : other, is_upper ? other : u, scratch, pool);
  const int64_t info = call.Run();
  if (info == 0 && !StopRequested()) call.Sort(u, other, v_transposed);
  return info;
}

template class BidiagonalVectors<float>;
template class BidiagonalVectors<double>;

}  // namespace tensord::cpu
