#include "backends/cpu/linalg/divided/tridiagonal_vectors.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "backends/cpu/linalg/divided/merge_columns.h"
#include "backends/cpu/linalg/divided/merge_tree.h"
#include "backends/cpu/linalg/divided/split_columns.h"
#include "backends/cpu/linalg/divided/tridiagonal_values.h"
#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/secular.h"
#include "backends/cpu/linalg/lapack/steps.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// Rows [begin, middle) and [middle, end) of the matrix, halves that become one.
struct Halves {
  int64_t begin, middle, end;
  int64_t size() const { return end - begin; }
  int64_t top() const { return middle - begin; }
};

}  // namespace

// One call: its numbers, and where its memory is.
template <typename R>
class TridiagonalVectors<R>::Call {
 public:
  Call(const TridiagonalVectors& plan, R* diagonal, R* beside, R* vectors, char* scratch, ThreadPool& pool)
      : n_(plan.n_),
        d_(diagonal),
        e_(beside),
        vectors_(vectors),
        pool_(pool),
        order_(At<int32_t>(scratch, plan.order_)),
        group_(At<int32_t>(scratch, plan.group_)),
        secular_(At<int32_t>(scratch, plan.secular_)),
        types_(At<int8_t>(scratch, plan.types_)),
        line_(At<R>(scratch, plan.line_)),
        poles_(At<R>(scratch, plan.poles_)),
        weights_(At<R>(scratch, plan.weights_)),
        deflated_(At<R>(scratch, plan.deflated_)),
        packed_(At<R>(scratch, plan.packed_)),
        factor_(At<R>(scratch, plan.factor_)),
        product_(scratch + plan.product_),
        product_bytes_(plan.product_bytes_) {}

  int64_t Run();

 private:
  friend class Merge;

  template <typename T>
  static T* At(char* scratch, int64_t place) {
    return reinterpret_cast<T*>(scratch + place);
  }
  void SolveBlock(int64_t begin, int64_t end);
  void SolveLeaves(const MergeTree& tree);
  void Sort();

  const int64_t n_;
  R *const d_, *const e_, *const vectors_;
  ThreadPool& pool_;
  int32_t *const order_, *const group_, *const secular_;
  int8_t* const types_;  // ColumnType
  R *const line_, *const poles_, *const weights_, *const deflated_, *const packed_, *const factor_;
  char* const product_;
  const int64_t product_bytes_;
  std::atomic<int64_t> failed_{0};
};

// Joins the eigenvectors of two halves into those of the whole, whose matrix differs from theirs by rho·v·v^T. Columns
// of a half without a part of v, or with the value of another column, are vectors already (deflation). The rest are
// multiplied with the vectors of diag(poles) + rho·weights·weights^T.
template <typename R>
class TridiagonalVectors<R>::Merge {
 public:
  Merge(Call* call, const Halves& halves)
      : call_(*call),
        n_(halves.size()),
        top_(halves.top()),
        leading_(call->n_),
        is_shared_(n_ >= kSharedMergeRows),
        d_(call->d_ + halves.begin),
        q_(call->vectors_ + halves.begin * (leading_ + 1)),
        merged_{.count = n_,
                .order = call->order_ + halves.begin,
                .group = call->group_ + halves.begin,
                .secular = call->secular_ + halves.begin,
                .types = call->types_ + halves.begin,
                .poles = call->poles_ + halves.begin,
                .weights = call->weights_ + halves.begin,
                .deflated = call->deflated_ + halves.begin},
        z_(call->line_ + halves.begin),
        packed_(call->packed_ + halves.begin * leading_),
        factor_(call->factor_ + halves.begin * FactorColumns(call->n_)),
        rho_(call->e_[halves.middle - 1]),
        row_(halves.middle) {}

  void Run();

 private:
  R* column(int64_t j) const { return q_ + j * leading_; }
  int64_t deflated_count() const { return n_ - merged_.kept; }
  bool Prepare();
  void Deflate();
  bool TakeTogether(int64_t former, int64_t column);
  void Group();
  bool Pack();
  bool FindRoots();
  bool RefineWeights();
  void MakeFactor(int64_t first, int64_t count, R* factor) const;
  bool Multiply();
  bool PutBackDeflated();
  void SortValues();

  Call& call_;
  const int64_t n_, top_, leading_;
  const bool is_shared_;
  R *const d_, *const q_;
  MergeColumns<R> merged_;
  R *const z_, *const packed_, *const factor_;
  R rho_;
  const int64_t row_;
  R tolerance_ = 0;
  SplitColumns<R> columns_;
};

template <typename R>
void TridiagonalVectors<R>::Merge::Run() {
  if (!Prepare()) return SortValues();
  Deflate();
  if (StopRequested()) return;
  Group();
  if (!Pack() || !FindRoots() || !RefineWeights() || !Multiply() || !PutBackDeflated()) return;
  SortValues();
}

// Makes v of norm 1, and all columns in the order of their values. False if it vanishes.
template <typename R>
bool TridiagonalVectors<R>::Merge::Prepare() {
  const R half = std::sqrt(R(0.5)), bottom = rho_ < 0 ? -half : half;
  R largest_z = 0, largest_d = 0;
  for (int64_t j = 0; j < n_; ++j) {
    z_[j] = j < top_ ? half * column(j)[top_ - 1] : bottom * column(j)[top_];
    largest_z = std::max(largest_z, std::abs(z_[j]));
    largest_d = std::max(largest_d, std::abs(d_[j]));
    merged_.types[j] = j < top_ ? kOnlyTop : kOnlyBottom;
    if (j >= top_) merged_.order[j] += static_cast<int32_t>(top_);
  }
  rho_ = std::abs(2 * rho_);
  tolerance_ = 8 * kRounding<R> * std::max(largest_d, largest_z);
  const auto is_less = [this](int32_t a, int32_t b) { return d_[a] < d_[b]; };
  std::merge(merged_.order, merged_.order + top_, merged_.order + top_, merged_.order + n_, merged_.group, is_less);
  std::copy_n(merged_.group, n_, merged_.order);
  return rho_ * largest_z > tolerance_;
}

// Takes two close values together: if a rotation of their columns leaves a negligible entry beside the diagonal, it
// moves all of the weight to the second one.
template <typename R>
bool TridiagonalVectors<R>::Merge::TakeTogether(int64_t former, int64_t column) {
  const R tau = std::hypot(z_[column], z_[former]);
  const R c = z_[column] / tau, s = -z_[former] / tau;
  if (std::abs((d_[column] - d_[former]) * c * s) > tolerance_) return false;
  z_[column] = tau;
  z_[former] = 0;
  merged_.Rotate(former, column, {c, s}, top_, n_, this->column(former), this->column(column));
  if (merged_.types[column] != merged_.types[former]) merged_.types[column] = kBoth;
  const R first = d_[former], second = d_[column];
  d_[former] = first * c * c + second * s * s;
  d_[column] = first * s * s + second * c * c;
  merged_.types[former] = kDeflated;
  return true;
}

template <typename R>
void TridiagonalVectors<R>::Merge::Deflate() {
  int64_t former = -1;
  for (int64_t i = 0; i < n_ && !StopRequested(); ++i) {
    const int64_t column = merged_.order[i];
    if (rho_ * std::abs(z_[column]) <= tolerance_) {
      merged_.types[column] = kDeflated;
      continue;
    }
    if (former >= 0 && !TakeTogether(former, column)) merged_.Keep(former, d_[former], z_[former]);
    former = column;
  }
  if (former >= 0) merged_.Keep(former, d_[former], z_[former]);
}

template <typename R>
void TridiagonalVectors<R>::Merge::Group() {
  columns_ = {.top_rows = top_, .bottom_rows = n_ - top_, .top = packed_};
  merged_.Group(/*apart=*/0, d_, &columns_);
  columns_.bottom = packed_ + top_ * (columns_.only_top + columns_.both);
}

// Takes the columns out of their place; columns that are vectors already go behind the others.
template <typename R>
bool TridiagonalVectors<R>::Merge::Pack() {
  R* const apart = packed_ + n_ * merged_.kept;
  return call_.pool_.ParallelForBlocks(n_, kCopiesOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end && !StopRequested(); ++p) {
      const R* const from = column(merged_.group[p]);
      if (p < merged_.kept) {
        columns_.Take(p, from, from + top_);
      } else {
        std::copy_n(from, n_, apart + (p - merged_.kept) * n_);
      }
    }
  });
}

// Column j gets the distances of the poles from value j.
template <typename R>
bool TridiagonalVectors<R>::Merge::FindRoots() {
  return call_.pool_.ParallelForBlocks(merged_.kept, kRootsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end && !StopRequested(); ++j) {
      if (lapack::EigenRoot(merged_.kept, j, merged_.poles, merged_.weights, rho_, column(j), d_ + j) != 0)
        KeepFirstFailure(row_, &call_.failed_);
    }
  });
}

// Computes the weights for which the found values are exact: with these weights the vectors are orthogonal.
template <typename R>
bool TridiagonalVectors<R>::Merge::RefineWeights() {
  if (merged_.kept <= 2) return true;
  return call_.pool_.ParallelForBlocks(merged_.kept, kWeightsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) z_[i] = column(i)[i];
    for (int64_t j = 0; j < merged_.kept && !StopRequested(); ++j) {
      const R *const differences = column(j), pole = merged_.poles[j];
      const auto multiply = [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) z_[i] *= differences[i] / (merged_.poles[i] - pole);
      };
      multiply(begin, std::clamp(j, begin, end));
      multiply(std::clamp(j + 1, begin, end), end);
    }
    for (int64_t i = begin; i < end; ++i) z_[i] = std::copysign(std::sqrt(-z_[i]), merged_.weights[i]);
  });
}

// Vectors of the inner matrix, with their rows in the order of the packed columns.
template <typename R>
void TridiagonalVectors<R>::Merge::MakeFactor(int64_t first, int64_t count, R* factor) const {
  for (int64_t j = 0; j < count && !StopRequested(); ++j) {
    const R* const differences = column(first + j);
    R* const into = factor + j * merged_.kept;
    if (merged_.kept <= 2) {
      for (int64_t p = 0; p < merged_.kept; ++p) into[p] = differences[merged_.secular[p]];
      continue;
    }
    R squares = 0;
    for (int64_t p = 0; p < merged_.kept; ++p) {
      into[p] = z_[merged_.secular[p]] / differences[merged_.secular[p]];
      squares += into[p] * into[p];
    }
    const R norm = std::sqrt(squares);
    for (int64_t p = 0; p < merged_.kept; ++p) into[p] /= norm;
  }
}

template <typename R>
bool TridiagonalVectors<R>::Merge::Multiply() {
  const int64_t step = FactorColumns(call_.n_);
  for (int64_t first = 0; first < merged_.kept; first += step) {
    const int64_t count = std::min(step, merged_.kept - first);
    const auto make = [&](int64_t begin, int64_t end) {
      MakeFactor(first + begin, end - begin, factor_ + begin * merged_.kept);
    };
    if (!call_.pool_.ParallelForBlocks(count, kRootsOfTask, make)) return false;
    R* const into = column(first);
    const typename SplitColumns<R>::Product product{factor_, merged_.kept, count, into, into + top_, leading_};
    if (is_shared_) {
      columns_.MultiplyOnPool(product, call_.product_, call_.product_bytes_, call_.pool_);
    } else {
      columns_.Multiply(product);
    }
    if (StopRequested()) return false;
  }
  return true;
}

template <typename R>
bool TridiagonalVectors<R>::Merge::PutBackDeflated() {
  const R* const apart = packed_ + n_ * merged_.kept;
  std::copy_n(merged_.deflated + merged_.kept, deflated_count(), d_ + merged_.kept);
  return call_.pool_.ParallelForBlocks(deflated_count(), kCopiesOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) std::copy_n(apart + p * n_, n_, column(merged_.kept + p));
  });
}

template <typename R>
void TridiagonalVectors<R>::Merge::SortValues() {
  std::iota(merged_.order, merged_.order + n_, 0);
  std::sort(merged_.order, merged_.order + n_,
            [this](int32_t a, int32_t b) { return d_[a] != d_[b] ? d_[a] < d_[b] : a < b; });
}

template <typename R>
void TridiagonalVectors<R>::Call::SolveLeaves(const MergeTree& tree) {
  pool_.ParallelFor(tree.leaves(), [&](int64_t leaf) {
    if (StopRequested()) return;
    const int64_t begin = tree.Bound(leaf), end = tree.Bound(leaf + 1);
    const int64_t info =
        lapack::Steqr(end - begin, d_ + begin, e_ + begin, vectors_ + begin * (n_ + 1), n_, packed_ + 2 * begin);
    if (info != 0) KeepFirstFailure(end, &failed_);
    std::iota(order_ + begin, order_ + end, 0);
  });
}

// A block without zeros beside the diagonal, at the scale of 1.
template <typename R>
void TridiagonalVectors<R>::Call::SolveBlock(int64_t begin, int64_t end) {
  const R largest = std::max(LargestOf(d_ + begin, end - begin), LargestOf(e_ + begin, end - begin - 1));
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  ScaleBy(-exponent, d_ + begin, end - begin);
  ScaleBy(-exponent, e_ + begin, end - begin - 1);
  const MergeTree tree(begin, end - begin);
  for (int64_t leaf = 1; leaf < tree.leaves(); ++leaf) {
    const int64_t row = tree.Bound(leaf);
    d_[row - 1] -= std::abs(e_[row - 1]);
    d_[row] -= std::abs(e_[row - 1]);
  }
  SolveLeaves(tree);
  if (StopRequested()) return;
  tree.ForEachMerge(failed_, pool_, [&](const LeafHalves& halves) {
    Merge(this, {.begin = tree.Bound(halves.begin), .middle = tree.Bound(halves.middle), .end = tree.Bound(halves.end)})
        .Run();
  });
  ScaleBy(exponent, d_ + begin, end - begin);
}

// All vectors by their values.
template <typename R>
void TridiagonalVectors<R>::Call::Sort() {
  std::iota(group_, group_ + n_, 0);
  std::sort(group_, group_ + n_, [this](int32_t a, int32_t b) { return d_[a] != d_[b] ? d_[a] < d_[b] : a < b; });
  for (int64_t j = 0; j < n_; ++j) line_[j] = d_[group_[j]];
  std::copy_n(line_, n_, d_);
  const auto copy = [&](auto each) {
    return pool_.ParallelForBlocks(n_, kCopiesOfTask, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end && !StopRequested(); ++j) each(j);
    });
  };
  if (std::is_sorted(group_, group_ + n_)) return;
  if (!copy([&](int64_t j) { std::copy_n(vectors_ + group_[j] * n_, n_, packed_ + j * n_); })) return;
  copy([&](int64_t j) { std::copy_n(packed_ + j * n_, n_, vectors_ + j * n_); });
}

template <typename R>
int64_t TridiagonalVectors<R>::Call::Run() {
  pool_.ParallelForBlocks(n_, kCopiesOfTask, [&](int64_t begin, int64_t end) {
    std::fill(vectors_ + begin * n_, vectors_ + end * n_, R(0));
  });
  for (int64_t begin = 0, end = 1; begin < n_; begin = end++) {
    if (StopRequested()) return 0;
    while (end < n_ && IsJoined(d_, e_, end - 1)) ++end;
    SolveBlock(begin, end);
    if (const int64_t failed = failed_.load(std::memory_order_relaxed); failed != 0) return failed;
  }
  if (!StopRequested()) Sort();
  return 0;
}

template <typename R>
TridiagonalVectors<R>::TridiagonalVectors(int64_t n) : n_(n) {
  for (int64_t* place : {&order_, &group_, &secular_}) *place = layout_.Add<int32_t>(n);
  types_ = layout_.Add<int8_t>(n);
  for (int64_t* place : {&line_, &poles_, &weights_, &deflated_}) *place = layout_.Add<R>(n);
  packed_ = layout_.Add<R>(n * std::max<int64_t>(n, 2));
  factor_ = layout_.Add<R>(n * FactorColumns(n));
  if (n >= kSharedMergeRows) product_bytes_ = SplitColumns<R>::ProductBytes(n, FactorColumns(n));
  product_ = layout_.Add<char>(product_bytes_);
}

template <typename R>
int64_t TridiagonalVectors<R>::Run(R* diagonal, R* beside, R* vectors, char* scratch, ThreadPool& pool) const {
  return Call(*this, diagonal, beside, vectors, scratch, pool).Run();
}

template class TridiagonalVectors<float>;
template class TridiagonalVectors<double>;

}  // namespace tensord::cpu
