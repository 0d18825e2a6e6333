#include "backends/cpu/linalg/divided/bidiagonal_merge.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/linalg/divided/merge_tree.h"
#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/secular.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// Makes a vector of norm 1, of numbers whose squares may be infinite or 0.
template <typename R>
void Normalize(int64_t n, R* x) {
  const R scale = ScaleToOrdinary(LargestOf(x, n));
  R squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    x[i] *= scale;
    squares += x[i] * x[i];
  }
  const R norm = std::sqrt(squares);
  for (int64_t i = 0; i < n; ++i) x[i] /= norm;
}

}  // namespace

template <typename R>
BidiagonalMerge<R>::BidiagonalMerge(BidiagonalWork<R>* work, const PartsOfRows& parts)
    : work_(*work),
      n_(parts.end - parts.begin),
      top_(parts.middle - parts.begin),
      v_rows_(n_ + (parts.has_more_columns ? 1 : 0)),
      is_shared_(n_ >= kSharedMergeRows),
      d_(work->d + parts.begin),
      u_{work->u.numbers + parts.begin * (work->u.leading + 1), work->u.leading},
      v_{work->v.numbers + parts.begin * (work->v.leading + 1), work->v.leading},
      merged_{.count = n_,
              .order = work->order + parts.begin,
              .group = work->group + parts.begin,
              .secular = work->secular + parts.begin,
              .types = work->types + parts.begin,
              .poles = work->poles + parts.begin,
              .weights = work->weights + parts.begin,
              .deflated = work->deflated + parts.begin,
              .kept = 1},
      z_(work->line + parts.begin),
      packed_u_(work->packed_u + parts.begin * work->n),
      packed_v_(work->packed_v + parts.begin * work->n),
      factor_u_(work->factor_u + parts.begin * FactorColumns(work->n)),
      factor_v_(work->factor_v + parts.begin * FactorColumns(work->n)),
      row_(parts.middle) {}

template <typename R>
void BidiagonalMerge<R>::Run() {
  Scale();
  Deflate();
  if (StopRequested()) return;
  StartFirst();
  Group();
  PackFirst();
  if (!Pack() || !FindRoots() || !RefineWeights() || !MultiplyAll() || !PutBackDeflated()) return;
  ScaleBy(exponent_, d_, n_);
}

// So that squares of values are neither 0 nor infinite.
template <typename R>
void BidiagonalMerge<R>::Scale() {
  R above = work_.d[row_], below = work_.e[row_];
  d_[top_] = 0;
  const R largest = std::max({std::abs(above), std::abs(below), LargestOf(d_, n_)});
  exponent_ = largest > 0 ? std::ilogb(largest) : 0;
  ScaleBy(-exponent_, d_, n_);
  Prepare(std::scalbn(above, -exponent_), std::scalbn(below, -exponent_));
}

// Makes the weights: the elements of the row taken out in V's columns; `above` and `below` are its two elements.
template <typename R>
void BidiagonalMerge<R>::Prepare(R above, R below) {
  for (int64_t j = 0; j < n_; ++j) {
    z_[j] = j <= top_ ? above * v(j)[top_] : below * v(j)[top_ + 1];
    merged_.types[j] = j < top_ ? kOnlyTop : kOnlyBottom;
  }
  first_ = z_[top_];
  if (has_more_columns()) last_ = below * v(n_)[top_ + 1];
  std::iota(merged_.order, merged_.order + n_, 0);
  std::swap(merged_.order[0], merged_.order[top_]);
  std::sort(merged_.order + 1, merged_.order + n_,
            [this](int32_t a, int32_t b) { return d_[a] != d_[b] ? d_[a] < d_[b] : a < b; });
  const R largest = n_ > 1 ? d_[merged_.order[n_ - 1]] : 0;
  tolerance_ = 8 * kRounding<R> * std::max({std::abs(above), std::abs(below), largest});
}

// Takes two poles that are as good as equal together: a rotation of their columns moves all of the weight to the
// second.
template <typename R>
bool BidiagonalMerge<R>::TakeTogether(int64_t former, int64_t column) {
  if (std::abs(d_[column] - d_[former]) > tolerance_) return false;
  const R tau = std::hypot(z_[column], z_[former]);
  const typename MergeColumns<R>::Rotation rotation{z_[column] / tau, -z_[former] / tau};
  merged_.Rotate(former, column, rotation, top_ + 1, n_, u(former), u(column));
  merged_.Rotate(former, column, rotation, top_ + 1, v_rows_, v(former), v(column));
  z_[column] = tau;
  z_[former] = 0;
  if (merged_.types[column] != merged_.types[former]) merged_.types[column] = kBoth;
  merged_.types[former] = kDeflated;
  return true;
}

template <typename R>
void BidiagonalMerge<R>::Deflate() {
  int64_t former = -1;
  for (int64_t i = 1; i < n_ && !StopRequested(); ++i) {
    const int64_t column = merged_.order[i];
    if (std::abs(z_[column]) <= tolerance_) {
      merged_.types[column] = kDeflated;
      continue;
    }
    if (former >= 0 && !TakeTogether(former, column)) merged_.Keep(former, d_[former], z_[former]);
    former = column;
  }
  if (former >= 0) merged_.Keep(former, d_[former], z_[former]);
}

// The first pole, and its weight, which must not vanish.
template <typename R>
void BidiagonalMerge<R>::StartFirst() {
  merged_.poles[0] = 0;
  if (merged_.kept > 1) merged_.poles[1] = std::max(merged_.poles[1], tolerance_ / 2);
  merged_.weights[0] = has_more_columns() ? std::hypot(first_, last_) : first_;
  if (std::abs(merged_.weights[0]) <= tolerance_) {
    merged_.weights[0] = tolerance_;
  } else if (has_more_columns()) {
    cosine_ = first_ / merged_.weights[0];
    sine_ = last_ / merged_.weights[0];
  }
}

template <typename R>
void BidiagonalMerge<R>::Group() {
  merged_.types[top_] = kColumnTypes;  // the first is none of them
  u_columns_ = {.top_rows = top_, .bottom_rows = n_ - top_ - 1, .top = packed_u_};
  merged_.Group(/*apart=*/1, d_, &u_columns_);
  u_columns_.bottom = packed_u_ + top_ * (u_columns_.only_top + u_columns_.both);
  v_columns_ = u_columns_;
  ++v_columns_.top_rows;
  v_columns_.bottom_rows = v_rows_ - v_columns_.top_rows;
  ++(has_more_columns() ? v_columns_.both : v_columns_.only_top);
  first_place_ = has_more_columns() ? v_columns_.only_top : 0;
  v_columns_.top = packed_v_;
  v_columns_.bottom = packed_v_ + v_columns_.top_rows * (v_columns_.only_top + v_columns_.both);
}

// V's first column, and the one that no row of the whole reaches.
template <typename R>
void BidiagonalMerge<R>::PackFirst() {
  const int64_t rows = top_ + 1;
  R* const from = v(top_);
  if (!has_more_columns()) return v_columns_.Take(first_place_, from, from + rows);
  R* const last = v(n_);
  for (int64_t i = 0; i < rows; ++i) {
    last[i] = -sine_ * from[i];
    from[i] *= cosine_;
  }
  for (int64_t i = rows; i < v_rows_; ++i) {
    from[i] = sine_ * last[i];
    last[i] *= cosine_;
  }
  v_columns_.Take(first_place_, from, from + rows);
}

// Takes the columns out of their place; columns that are vectors already go behind the others.
template <typename R>
bool BidiagonalMerge<R>::Pack() {
  R *const u_apart = packed_u_ + n_ * merged_.kept, *const v_apart = packed_v_ + v_rows_ * merged_.kept;
  return work_.pool->ParallelForBlocks(n_ - 1, kCopiesOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end && !StopRequested(); ++p) {
      const R *const from_u = u(merged_.group[p]), *const from_v = v(merged_.group[p]);
      if (p < merged_.kept - 1) {
        u_columns_.Take(p, from_u, from_u + top_ + 1);
        v_columns_.Take(p < first_place_ ? p : p + 1, from_v, from_v + top_ + 1);
      } else {
        std::copy_n(from_u, n_, u_apart + (p - merged_.kept + 1) * n_);
        std::copy_n(from_v, v_rows_, v_apart + (p - merged_.kept + 1) * v_rows_);
      }
    }
  });
}

// Column j of U gets the distances of the poles from value j, that of V their sums.
template <typename R>
bool BidiagonalMerge<R>::FindRoots() {
  if (merged_.kept == 1) {
    d_[0] = std::abs(merged_.weights[0]);
    return true;
  }
  R squares = 0;
  for (int64_t k = 0; k < merged_.kept; ++k) squares += merged_.weights[k] * merged_.weights[k];
  const R norm = std::sqrt(squares);
  for (int64_t k = 0; k < merged_.kept; ++k) merged_.weights[k] /= norm;
  rho_ = norm * norm;
  return work_.pool->ParallelForBlocks(merged_.kept, kRootsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end && !StopRequested(); ++j) {
      if (lapack::SingularRoot(merged_.kept, j, merged_.poles, merged_.weights, rho_, u(j), d_ + j, v(j)) != 0) {
        KeepFirstFailure(row_ + 1, &work_.failed);
      }
    }
  });
}

// Computes the weights for which the found values are exact: with these weights the vectors are orthogonal.
template <typename R>
bool BidiagonalMerge<R>::RefineWeights() {
  if (merged_.kept == 1) return true;
  const int64_t last = merged_.kept - 1;
  return work_.pool->ParallelForBlocks(merged_.kept, kWeightsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) z_[i] = u(last)[i] * v(last)[i];
    for (int64_t j = 0; j < last && !StopRequested(); ++j) {
      const R *const differences = u(j), *const sums = v(j);
      const auto multiply = [&](int64_t from, int64_t to, R pole) {
        for (int64_t i = from; i < to; ++i) {
          z_[i] *= differences[i] * sums[i] / (merged_.poles[i] - pole) / (merged_.poles[i] + pole);
        }
      };
      const int64_t middle = std::clamp(j + 1, begin, end);
      multiply(begin, middle, merged_.poles[j + 1]);
      multiply(middle, end, merged_.poles[j]);
    }
    for (int64_t i = begin; i < end; ++i) z_[i] = std::copysign(std::sqrt(std::abs(z_[i])), merged_.weights[i]);
  });
}

// Vectors of the inner matrix from number `first` + `begin` on, with their rows in the order of the packed columns, the
// first one of U's last.
template <typename R>
void BidiagonalMerge<R>::MakeFactors(int64_t first, int64_t begin, int64_t end) const {
  for (int64_t j = begin; j < end && !StopRequested(); ++j) {
    const R *const differences = u(first + j), *const sums = v(first + j);
    R *const into_u = factor_u_ + j * merged_.kept, *const into_v = factor_v_ + j * merged_.kept;
    if (merged_.kept == 1) {
      into_u[0] = merged_.weights[0] < 0 ? R(-1) : R(1);
      into_v[0] = 1;
      continue;
    }
    for (int64_t p = 0; p < merged_.kept - 1; ++p) {
      const int64_t k = merged_.secular[p];
      const R right = z_[k] / differences[k] / sums[k];
      into_v[p < first_place_ ? p : p + 1] = right;
      into_u[p] = merged_.poles[k] * right;
    }
    into_v[first_place_] = z_[0] / differences[0] / sums[0];
    into_u[merged_.kept - 1] = -1;
    Normalize(merged_.kept, into_u);
    Normalize(merged_.kept, into_v);
  }
}

template <typename R>
void BidiagonalMerge<R>::Multiply(const SplitColumns<R>& columns,
                                  const typename SplitColumns<R>::Product& product) const {
  if (is_shared_) {
    columns.MultiplyOnPool(product, work_.product, work_.product_bytes, *work_.pool);
  } else {
    columns.Multiply(product);
  }
}

template <typename R>
bool BidiagonalMerge<R>::MultiplyAll() {
  const int64_t step = FactorColumns(work_.n);
  for (int64_t first = 0; first < merged_.kept; first += step) {
    const int64_t count = std::min(step, merged_.kept - first);
    const auto make = [&](int64_t begin, int64_t end) { MakeFactors(first, begin, end); };
    if (!work_.pool->ParallelForBlocks(count, kRootsOfTask, make)) return false;
    R *const into_u = u(first), *const into_v = v(first);
    Multiply(u_columns_, {factor_u_, merged_.kept, count, into_u, into_u + top_ + 1, u_.leading});
    for (int64_t j = 0; j < count; ++j) into_u[j * u_.leading + top_] = factor_u_[(j + 1) * merged_.kept - 1];
    Multiply(v_columns_, {factor_v_, merged_.kept, count, into_v, into_v + top_ + 1, v_.leading});
    if (StopRequested()) return false;
  }
  return true;
}

template <typename R>
bool BidiagonalMerge<R>::PutBackDeflated() {
  const R *const u_apart = packed_u_ + n_ * merged_.kept, *const v_apart = packed_v_ + v_rows_ * merged_.kept;
  std::copy(merged_.deflated + merged_.kept - 1, merged_.deflated + n_ - 1, d_ + merged_.kept);
  return work_.pool->ParallelForBlocks(n_ - merged_.kept, kCopiesOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      std::copy_n(u_apart + p * n_, n_, u(merged_.kept + p));
      std::copy_n(v_apart + p * v_rows_, v_rows_, v(merged_.kept + p));
    }
  });
}

template class BidiagonalMerge<float>;
template class BidiagonalMerge<double>;

}  // namespace tensord::cpu
