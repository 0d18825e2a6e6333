#include "backends/cpu/bidiagonal_vectors.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "backends/cpu/lapack_secular.h"
#include "backends/cpu/linalg_copies.h"
#include "backends/cpu/merge_tree.h"
#include "backends/cpu/split_columns.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// Rows [begin, middle) and (middle, end) of the matrix, parts that become one with row `middle` between them. There is
// a column more than rows but for the last part of a block.
struct PartsOfRows {
  int64_t begin, middle, end;
  bool has_more_columns;
};

template <typename R>
void ScaleBy(int exponent, R* numbers, int64_t count) {
  for (int64_t i = 0; i < count; ++i) numbers[i] = std::scalbn(numbers[i], exponent);
}

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

// One call: its numbers, and where its memory is. U's columns are vectors, and so are V's.
template <typename R>
class BidiagonalVectors<R>::Call {
 public:
  Call(const BidiagonalVectors& plan, R* diagonal, R* beside, const Vectors& u, const Vectors& v, char* scratch,
       ThreadPool& pool)
      : n_(plan.n_),
        d_(diagonal),
        e_(beside),
        u_(u),
        v_(v),
        pool_(pool),
        order_(At<int32_t>(scratch, plan.order_)),
        group_(At<int32_t>(scratch, plan.group_)),
        secular_(At<int32_t>(scratch, plan.secular_)),
        types_(At<int8_t>(scratch, plan.types_)),
        line_(At<R>(scratch, plan.line_)),
        poles_(At<R>(scratch, plan.poles_)),
        weights_(At<R>(scratch, plan.weights_)),
        deflated_(At<R>(scratch, plan.deflated_)),
        packed_u_(At<R>(scratch, plan.packed_u_)),
        packed_v_(At<R>(scratch, plan.packed_v_)),
        factor_u_(At<R>(scratch, plan.factor_u_)),
        factor_v_(At<R>(scratch, plan.factor_v_)),
        product_(scratch + plan.product_) {}

  int64_t Run();
  // Puts the values in order, and the vectors into their places: one matrix's as columns of itself, the other one's as
  // rows.
  void Sort(const Vectors& columns, const Vectors& others, const Vectors& rows);

 private:
  friend class Merge;

  template <typename T>
  static T* At(char* scratch, int64_t place) {
    return reinterpret_cast<T*>(scratch + place);
  }
  void SolveBlock(int64_t begin, int64_t end);
  void SolveLeaf(int64_t begin, int64_t end, bool has_more_columns);

  const int64_t n_;
  R *const d_, *const e_;
  const Vectors u_, v_;
  ThreadPool& pool_;
  int32_t *const order_, *const group_, *const secular_;
  int8_t* const types_;  // ColumnType
  R *const line_, *const poles_, *const weights_, *const deflated_;
  R *const packed_u_, *const packed_v_, *const factor_u_, *const factor_v_;
  char* const product_;
  std::atomic<int64_t> failed_{0};
};

// The singular vectors of two parts become those of the whole, which is, between them, a matrix of a first row of
// weights and a diagonal of poles. Columns whose weight vanishes, or whose pole is another one's too, are vectors
// already (deflation). The rest are multiplied with the vectors of the inner matrix. Its first pole is 0, that of the
// column `top_`: the row taken out in U, and in V what no row of the parts reaches.
template <typename R>
class BidiagonalVectors<R>::Merge {
 public:
  Merge(Call* call, const PartsOfRows& parts)
      : call_(*call),
        n_(parts.end - parts.begin),
        top_(parts.middle - parts.begin),
        v_rows_(n_ + (parts.has_more_columns ? 1 : 0)),
        is_shared_(n_ >= kSharedMergeRows),
        d_(call->d_ + parts.begin),
        u_{call->u_.numbers + parts.begin * (call->u_.leading + 1), call->u_.leading},
        v_{call->v_.numbers + parts.begin * (call->v_.leading + 1), call->v_.leading},
        order_(call->order_ + parts.begin),
        group_(call->group_ + parts.begin),
        secular_(call->secular_ + parts.begin),
        types_(call->types_ + parts.begin),
        z_(call->line_ + parts.begin),
        poles_(call->poles_ + parts.begin),
        weights_(call->weights_ + parts.begin),
        deflated_(call->deflated_ + parts.begin),
        packed_u_(call->packed_u_ + parts.begin * call->n_),
        packed_v_(call->packed_v_ + parts.begin * call->n_),
        factor_u_(call->factor_u_ + parts.begin * kFactorColumns),
        factor_v_(call->factor_v_ + parts.begin * kFactorColumns),
        row_(parts.middle) {}

  void Run();

 private:
  R* u(int64_t j) const { return u_.numbers + j * u_.leading; }
  R* v(int64_t j) const { return v_.numbers + j * v_.leading; }
  bool has_more_columns() const { return v_rows_ > n_; }
  void Scale();
  void Prepare(R above, R below);
  void Deflate();
  void Keep(int64_t column);
  bool TakeTogether(int64_t former, int64_t column);
  void Rotate(int64_t x, int64_t y, R c, R s) const;
  void StartFirst();
  void Group();
  void PackFirst();
  bool Pack();
  bool FindRoots();
  bool RefineWeights();
  void MakeFactors(int64_t first, int64_t begin, int64_t end) const;
  void Multiply(const SplitColumns<R>& columns, const typename SplitColumns<R>::Product& product) const;
  bool MultiplyAll();
  bool PutBackDeflated();

  Call& call_;
  const int64_t n_, top_, v_rows_;
  const bool is_shared_;
  R* const d_;
  const Vectors u_, v_;
  int32_t *const order_, *const group_, *const secular_;
  int8_t* const types_;
  R *const z_, *const poles_, *const weights_, *const deflated_;
  R *const packed_u_, *const packed_v_, *const factor_u_, *const factor_v_;
  const int64_t row_;
  int exponent_ = 0;
  R tolerance_ = 0, rho_ = 0;
  R first_ = 0, last_ = 0;     // weights of V's columns `top_` and, where there is one more, n_
  R cosine_ = 1, sine_ = 0;    // of the rotation that takes the second one's to the first
  int64_t kept_ = 1;           // columns, the first included
  int64_t first_place_ = 0;    // of the first one among V's packed columns
  SplitColumns<R> u_columns_;  // without the first
  SplitColumns<R> v_columns_;
};

template <typename R>
void BidiagonalVectors<R>::Merge::Run() {
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
void BidiagonalVectors<R>::Merge::Scale() {
  R above = call_.d_[row_], below = call_.e_[row_];
  d_[top_] = 0;
  const R largest = std::max({std::abs(above), std::abs(below), LargestOf(d_, n_)});
  exponent_ = largest > 0 ? std::ilogb(largest) : 0;
  ScaleBy(-exponent_, d_, n_);
  Prepare(std::scalbn(above, -exponent_), std::scalbn(below, -exponent_));
}

// Weights are what the row taken out is in V's columns: `above` and `below` are its two elements.
template <typename R>
void BidiagonalVectors<R>::Merge::Prepare(R above, R below) {
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
void BidiagonalVectors<R>::Merge::Keep(int64_t column) {
  poles_[kept_] = d_[column];
  weights_[kept_] = z_[column];
  secular_[kept_++] = static_cast<int32_t>(column);
}

template <typename R>
void BidiagonalVectors<R>::Merge::Rotate(int64_t x, int64_t y, R c, R s) const {
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
bool BidiagonalVectors<R>::Merge::TakeTogether(int64_t former, int64_t column) {
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
void BidiagonalVectors<R>::Merge::Deflate() {
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
void BidiagonalVectors<R>::Merge::StartFirst() {
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
void BidiagonalVectors<R>::Merge::Group() {
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
void BidiagonalVectors<R>::Merge::PackFirst() {
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
bool BidiagonalVectors<R>::Merge::Pack() {
  R *const u_apart = packed_u_ + n_ * kept_, *const v_apart = packed_v_ + v_rows_ * kept_;
  return call_.pool_.ParallelForBlocks(n_ - 1, kCopiesOfTask, [&](int64_t begin, int64_t end) {
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
bool BidiagonalVectors<R>::Merge::FindRoots() {
  if (kept_ == 1) {
    d_[0] = std::abs(weights_[0]);
    return true;
  }
  R squares = 0;
  for (int64_t k = 0; k < kept_; ++k) squares += weights_[k] * weights_[k];
  const R norm = std::sqrt(squares);
  for (int64_t k = 0; k < kept_; ++k) weights_[k] /= norm;
  rho_ = norm * norm;
  return call_.pool_.ParallelForBlocks(kept_, kRootsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end && !StopRequested(); ++j) {
      if (lapack::SingularRoot(kept_, j, poles_, weights_, rho_, u(j), d_ + j, v(j)) != 0) {
        KeepFirstFailure(row_ + 1, &call_.failed_);
      }
    }
  });
}

// The weights of which the values that were found are exact: with those the vectors are orthogonal.
template <typename R>
bool BidiagonalVectors<R>::Merge::RefineWeights() {
  if (kept_ == 1) return true;
  const int64_t last = kept_ - 1;
  return call_.pool_.ParallelForBlocks(kept_, kWeightsOfTask, [&](int64_t begin, int64_t end) {
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
void BidiagonalVectors<R>::Merge::MakeFactors(int64_t first, int64_t begin, int64_t end) const {
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
void BidiagonalVectors<R>::Merge::Multiply(const SplitColumns<R>& columns,
                                           const typename SplitColumns<R>::Product& product) const {
  if (is_shared_) {
    columns.MultiplyOnPool(product, call_.product_, call_.pool_);
  } else {
    columns.Multiply(product);
  }
}

template <typename R>
bool BidiagonalVectors<R>::Merge::MultiplyAll() {
  const int64_t step = is_shared_ ? kSharedFactorColumns : kFactorColumns;
  for (int64_t first = 0; first < kept_; first += step) {
    const int64_t count = std::min(step, kept_ - first);
    const auto make = [&](int64_t begin, int64_t end) { MakeFactors(first, begin, end); };
    if (!call_.pool_.ParallelForBlocks(count, kRootsOfTask, make)) return false;
    R *const into_u = u(first), *const into_v = v(first);
    Multiply(u_columns_, {factor_u_, kept_, count, into_u, into_u + top_ + 1, u_.leading});
    for (int64_t j = 0; j < count; ++j) into_u[j * u_.leading + top_] = factor_u_[(j + 1) * kept_ - 1];
    Multiply(v_columns_, {factor_v_, kept_, count, into_v, into_v + top_ + 1, v_.leading});
    if (StopRequested()) return false;
  }
  return true;
}

template <typename R>
bool BidiagonalVectors<R>::Merge::PutBackDeflated() {
  const R *const u_apart = packed_u_ + n_ * kept_, *const v_apart = packed_v_ + v_rows_ * kept_;
  std::copy(deflated_ + kept_ - 1, deflated_ + n_ - 1, d_ + kept_);
  return call_.pool_.ParallelForBlocks(n_ - kept_, kCopiesOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      std::copy_n(u_apart + p * n_, n_, u(kept_ + p));
      std::copy_n(v_apart + p * v_rows_, v_rows_, v(kept_ + p));
    }
  });
}

template <typename R>
void BidiagonalVectors<R>::Call::SolveLeaf(int64_t begin, int64_t end, bool has_more_columns) {
  const int64_t rows = end - begin, columns = rows + (has_more_columns ? 1 : 0);
  R* const transposed = factor_v_ + begin * kFactorColumns;
  R* const u = u_.numbers + begin * (u_.leading + 1);
  R* const v = v_.numbers + begin * (v_.leading + 1);
  std::fill_n(transposed, columns * columns, R(0));
  SetDiagonal(columns, columns, R(1), transposed);
  for (int64_t i = 0; i < rows; ++i) u[i * (u_.leading + 1)] = 1;
  const int64_t info = lapack::LeafSvd(rows, has_more_columns, d_ + begin, e_ + begin, transposed, u, u_.leading,
                                       factor_u_ + begin * kFactorColumns);
  if (info != 0) KeepFirstFailure(end, &failed_);
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < columns; ++i) v[j * v_.leading + i] = transposed[i * columns + j];
  }
}

// A block without zeros beside the diagonal.
template <typename R>
void BidiagonalVectors<R>::Call::SolveBlock(int64_t begin, int64_t end) {
  // Beyond the last row a tree has one more, which would be taken out behind it.
  const MergeTree tree(begin, end - begin + 1);
  const auto rows_end = [&](int64_t leaf) { return tree.Bound(leaf) - 1; };
  pool_.ParallelFor(tree.leaves(), [&](int64_t leaf) {
    if (!StopRequested()) SolveLeaf(tree.Bound(leaf), rows_end(leaf + 1), rows_end(leaf + 1) < end);
  });
  if (StopRequested()) return;
  tree.ForEachMerge(failed_, pool_, [&](const LeafHalves& halves) {
    Merge(this, {.begin = tree.Bound(halves.begin),
                 .middle = rows_end(halves.middle),
                 .end = rows_end(halves.end),
                 .has_more_columns = rows_end(halves.end) < end})
        .Run();
  });
}

template <typename R>
void BidiagonalVectors<R>::Call::Sort(const Vectors& columns, const Vectors& others, const Vectors& rows) {
  std::iota(group_, group_ + n_, 0);
  std::sort(group_, group_ + n_, [this](int32_t a, int32_t b) { return d_[a] != d_[b] ? d_[a] > d_[b] : a < b; });
  for (int64_t j = 0; j < n_; ++j) line_[j] = d_[group_[j]];
  std::copy_n(line_, n_, d_);
  const auto in_blocks = [&](auto each) {
    return pool_.ParallelForBlocks(n_, kCopiesOfTask, [&](int64_t begin, int64_t end) {
      for (int64_t j = 0; j < n_ && !StopRequested(); ++j) each(j, begin, end);
    });
  };
  const auto take = [&](int64_t j, int64_t begin, int64_t end) {
    const R* const from = columns.numbers + group_[j] * columns.leading;
    std::copy(from + begin, from + end, packed_u_ + j * n_ + begin);
  };
  const auto put = [&](int64_t j, int64_t begin, int64_t end) {
    const R* const from = packed_u_ + j * n_;
    std::copy(from + begin, from + end, columns.numbers + j * columns.leading + begin);
  };
  const auto transpose = [&](int64_t j, int64_t begin, int64_t end) {
    const R* const from = others.numbers + group_[j] * others.leading;
    for (int64_t i = begin; i < end; ++i) rows.numbers[i * rows.leading + j] = from[i];
  };
  if (in_blocks(take) && in_blocks(put)) in_blocks(transpose);
}

template <typename R>
int64_t BidiagonalVectors<R>::Call::Run() {
  pool_.ParallelForBlocks(n_, kCopiesOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      std::fill_n(u_.numbers + j * u_.leading, n_, R(0));
      std::fill_n(v_.numbers + j * v_.leading, n_, R(0));
    }
  });
  const R largest = n_ > 0 ? std::max(LargestOf(d_, n_), LargestOf(e_, n_ - 1)) : R(0);
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  ScaleBy(-exponent, d_, n_);
  ScaleBy(-exponent, e_, n_ - 1);
  // What vanishes beside the largest number is nothing beside the diagonal, and not less than that on it.
  const R least = R(0.9) * kRounding<R>;
  for (int64_t i = 0; i < n_ && largest > 0; ++i) {
    if (std::abs(d_[i]) < least) d_[i] = std::copysign(least, d_[i]);
  }
  for (int64_t begin = 0, end = 1; begin < n_; begin = end++) {
    if (StopRequested()) return 0;
    while (end < n_ && std::abs(e_[end - 1]) >= least) ++end;
    SolveBlock(begin, end);
    if (const int64_t failed = failed_.load(std::memory_order_relaxed); failed != 0) return failed;
  }
  ScaleBy(exponent, d_, n_);
  return 0;
}

template <typename R>
BidiagonalVectors<R>::BidiagonalVectors(int64_t n) : n_(n) {
  for (int64_t* place : {&order_, &group_, &secular_}) *place = layout_.Add<int32_t>(n);
  types_ = layout_.Add<int8_t>(n);
  for (int64_t* place : {&line_, &poles_, &weights_, &deflated_}) *place = layout_.Add<R>(n);
  for (int64_t* place : {&other_, &packed_u_, &packed_v_}) *place = layout_.Add<R>(n * n);
  const int64_t factor = n * (n < kSharedMergeRows ? kFactorColumns : kSharedFactorColumns);
  for (int64_t* place : {&factor_u_, &factor_v_}) *place = layout_.Add<R>(factor);
  if (n >= kSharedMergeRows) product_ = layout_.Add<char>(SplitColumns<R>::kProductBytes);
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
