#include "backends/cpu/bidiagonal_merge.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/lapack_secular.h"
#include "backends/cpu/linalg_copies.h"
#include "backends/cpu/merge_tree.h"
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
      order_(work->order + parts.begin),
      group_(work->group + parts.begin),
      secular_(work->secular + parts.begin),
      types_(work->types + parts.begin),
      z_(work->line + parts.begin),
      poles_(work->poles + parts.begin),
      weights_(work->weights + parts.begin),
      deflated_(work->deflated + parts.begin),
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

// Weights are what the row taken out is in V's columns: `above` and `below` are its two elements.
template <typename R>
void BidiagonalMerge<R>::Prepare(R above, R below) {
  for (int64_t j = 0; j < n_; ++j) {
    z_[j] = j <= top_ ? above * v(j)[top_] : below * v(j)[top_ + 1];
    types_[j] = j < top_ ? kOnlyTop : kOnlyBottom;
  }
  first_ = z_[top_];
  if (has_more_columns()) last_ = below * v(n_)[top_ + 1];
  std::iota(order_, order_ + n_, 0);
  std::swap(order_[0], order_[top_]);
  std::sort(order_ + 1, order_ + n_, [this](int32_t a, int32_t b) { return d_[a] != d_[b] ? d_[a] < d_[b] : a < b; });
  const R largest = n_ > 1 ? d_[order_[n_ - 1]] : 0;
  tolerance_ = 8 * kRounding<R> * std::max({std::abs(above), std::abs(below), largest});
}

template <typename R>
void BidiagonalMerge<R>::Keep(int64_t column) {
  poles_[kept_] = d_[column];
  weights_[kept_] = z_[column];
  secular_[kept_++] = static_cast<int32_t>(column);
}

template <typename R>
void BidiagonalMerge<R>::Rotate(int64_t x, int64_t y, R c, R s) const {
  const bool are_top = types_[x] == kOnlyTop && types_[y] == kOnlyTop;
  const bool are_bottom = types_[x] == kOnlyBottom && types_[y] == kOnlyBottom;
  const auto rotate = [&](int64_t rows, R* from, R* to) {
    for (int64_t i = are_bottom ? top_ + 1 : 0; i < (are_top ? top_ + 1 : rows); ++i) {
      const R kept = from[i];
      from[i] = c * kept + s * to[i];
      to[i] = c * to[i] - s * kept;
    }
  };
  rotate(n_, u(x), u(y));
  rotate(v_rows_, v(x), v(y));
}

// Where two poles are as good as equal a rotation of their columns takes all of the weight to the second one.
template <typename R>
bool BidiagonalMerge<R>::TakeTogether(int64_t former, int64_t column) {
  if (std::abs(d_[column] - d_[former]) > tolerance_) return false;
  const R tau = std::hypot(z_[column], z_[former]);
  Rotate(former, column, z_[column] / tau, -z_[former] / tau);
  z_[column] = tau;
  z_[former] = 0;
  if (types_[column] != types_[former]) types_[column] = kBoth;
  types_[former] = kDeflated;
  return true;
}

template <typename R>
void BidiagonalMerge<R>::Deflate() {
  int64_t former = -1;
  for (int64_t i = 1; i < n_ && !StopRequested(); ++i) {
    const int64_t column = order_[i];
    if (std::abs(z_[column]) <= tolerance_) {
      types_[column] = kDeflated;
      continue;
    }
    if (former >= 0 && !TakeTogether(former, column)) Keep(former);
    former = column;
  }
  if (former >= 0) Keep(former);
}

// The first pole, and its weight, which must not vanish.
template <typename R>
void BidiagonalMerge<R>::StartFirst() {
  poles_[0] = 0;
  if (kept_ > 1) poles_[1] = std::max(poles_[1], tolerance_ / 2);
  weights_[0] = has_more_columns() ? std::hypot(first_, last_) : first_;
  if (std::abs(weights_[0]) <= tolerance_) {
    weights_[0] = tolerance_;
  } else if (has_more_columns()) {
    cosine_ = first_ / weights_[0];
    sine_ = last_ / weights_[0];
  }
}

// group_[p] is the column that is number p by type, of those beside the first, and secular_[p] its pole.
template <typename R>
void BidiagonalMerge<R>::Group() {
  int64_t counts[kColumnTypes] = {}, places[kColumnTypes];
  types_[top_] = kColumnTypes;
  for (int64_t j = 0; j < n_; ++j) {
    if (j != top_) ++counts[types_[j]];
  }
  std::exclusive_scan(counts, counts + kColumnTypes, places, int64_t{0});
  std::copy(secular_ + 1, secular_ + kept_, order_);
  for (int64_t k = 1; k < kept_; ++k) {
    const int64_t column = order_[k - 1], place = places[types_[column]]++;
    group_[place] = static_cast<int32_t>(column);
    secular_[place] = static_cast<int32_t>(k);
  }
  for (int64_t j = 0; j < n_; ++j) {
    if (types_[j] == kDeflated) group_[places[kDeflated]++] = static_cast<int32_t>(j);
  }
  for (int64_t p = kept_ - 1; p < n_ - 1; ++p) deflated_[p] = d_[group_[p]];
  u_columns_ = {.top_rows = top_,
                .bottom_rows = n_ - top_ - 1,
                .only_top = counts[kOnlyTop],
                .both = counts[kBoth],
                .only_bottom = counts[kOnlyBottom],
                .top = packed_u_};
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

// Takes the columns out of their place, those that are vectors already behind the others.
template <typename R>
bool BidiagonalMerge<R>::Pack() {
  R *const u_apart = packed_u_ + n_ * kept_, *const v_apart = packed_v_ + v_rows_ * kept_;
  return work_.pool->ParallelForBlocks(n_ - 1, kCopiesOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end && !StopRequested(); ++p) {
      const R *const from_u = u(group_[p]), *const from_v = v(group_[p]);
      if (p < kept_ - 1) {
        u_columns_.Take(p, from_u, from_u + top_ + 1);
        v_columns_.Take(p < first_place_ ? p : p + 1, from_v, from_v + top_ + 1);
      } else {
        std::copy_n(from_u, n_, u_apart + (p - kept_ + 1) * n_);
        std::copy_n(from_v, v_rows_, v_apart + (p - kept_ + 1) * v_rows_);
      }
    }
  });
}

// Column j of U gets the distances of the poles from value j, that of V their sums.
template <typename R>
bool BidiagonalMerge<R>::FindRoots() {
  if (kept_ == 1) {
    d_[0] = std::abs(weights_[0]);
    return true;
  }
  R squares = 0;
  for (int64_t k = 0; k < kept_; ++k) squares += weights_[k] * weights_[k];
  const R norm = std::sqrt(squares);
  for (int64_t k = 0; k < kept_; ++k) weights_[k] /= norm;
  rho_ = norm * norm;
  return work_.pool->ParallelForBlocks(kept_, kRootsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end && !StopRequested(); ++j) {
      if (lapack::SingularRoot(kept_, j, poles_, weights_, rho_, u(j), d_ + j, v(j)) != 0) {
        KeepFirstFailure(row_ + 1, &work_.failed);
      }
    }
  });
}

// The weights of which the values that were found are exact: with those the vectors are orthogonal.
template <typename R>
bool BidiagonalMerge<R>::RefineWeights() {
  if (kept_ == 1) return true;
  const int64_t last = kept_ - 1;
  return work_.pool->ParallelForBlocks(kept_, kWeightsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) z_[i] = u(last)[i] * v(last)[i];
    for (int64_t j = 0; j < last && !StopRequested(); ++j) {
      const R *const differences = u(j), *const sums = v(j);
      const auto multiply = [&](int64_t from, int64_t to, R pole) {
        for (int64_t i = from; i < to; ++i) {
          z_[i] *= differences[i] * sums[i] / (poles_[i] - pole) / (poles_[i] + pole);
        }
      };
      const int64_t middle = std::clamp(j + 1, begin, end);
      multiply(begin, middle, poles_[j + 1]);
      multiply(middle, end, poles_[j]);
    }
    for (int64_t i = begin; i < end; ++i) z_[i] = std::copysign(std::sqrt(std::abs(z_[i])), weights_[i]);
  });
}

// Vectors of the inner matrix from number `first` + `begin` on, with their rows in the order of the packed columns, the
// first one of U's last.
template <typename R>
void BidiagonalMerge<R>::MakeFactors(int64_t first, int64_t begin, int64_t end) const {
  for (int64_t j = begin; j < end && !StopRequested(); ++j) {
    const R *const differences = u(first + j), *const sums = v(first + j);
    R *const into_u = factor_u_ + j * kept_, *const into_v = factor_v_ + j * kept_;
    if (kept_ == 1) {
      into_u[0] = weights_[0] < 0 ? R(-1) : R(1);
      into_v[0] = 1;
      continue;
    }
    for (int64_t p = 0; p < kept_ - 1; ++p) {
      const int64_t k = secular_[p];
      const R right = z_[k] / differences[k] / sums[k];
      into_v[p < first_place_ ? p : p + 1] = right;
      into_u[p] = poles_[k] * right;
    }
    into_v[first_place_] = z_[0] / differences[0] / sums[0];
    into_u[kept_ - 1] = -1;
    Normalize(kept_, into_u);
    Normalize(kept_, into_v);
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
  for (int64_t first = 0; first < kept_; first += step) {
    const int64_t count = std::min(step, kept_ - first);
    const auto make = [&](int64_t begin, int64_t end) { MakeFactors(first, begin, end); };
    if (!work_.pool->ParallelForBlocks(count, kRootsOfTask, make)) return false;
    R *const into_u = u(first), *const into_v = v(first);
    Multiply(u_columns_, {factor_u_, kept_, count, into_u, into_u + top_ + 1, u_.leading});
    for (int64_t j = 0; j < count; ++j) into_u[j * u_.leading + top_] = factor_u_[(j + 1) * kept_ - 1];
    Multiply(v_columns_, {factor_v_, kept_, count, into_v, into_v + top_ + 1, v_.leading});
    if (StopRequested()) return false;
  }
  return true;
}

template <typename R>
bool BidiagonalMerge<R>::PutBackDeflated() {
  const R *const u_apart = packed_u_ + n_ * kept_, *const v_apart = packed_v_ + v_rows_ * kept_;
  std::copy(deflated_ + kept_ - 1, deflated_ + n_ - 1, d_ + kept_);
  return work_.pool->ParallelForBlocks(n_ - kept_, kCopiesOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      std::copy_n(u_apart + p * n_, n_, u(kept_ + p));
      std::copy_n(v_apart + p * v_rows_, v_rows_, v(kept_ + p));
    }
  });
}

template class BidiagonalMerge<float>;
template class BidiagonalMerge<double>;

}  // namespace tensord::cpu
