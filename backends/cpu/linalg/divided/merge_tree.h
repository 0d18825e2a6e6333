#ifndef TENSORD_BACKENDS_CPU_LINALG_DIVIDED_MERGE_TREE_H_
#define TENSORD_BACKENDS_CPU_LINALG_DIVIDED_MERGE_TREE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/functional/function_ref.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/stop_signal.h"

// The cuts of divide and conquer, by the size of the matrix alone, and the way through the parts.

namespace tensord::cpu {

// A leaf is one call of LAPACK, which costs as much as its rows cubed; merges cost their products. LAPACK's own is 25.
inline constexpr int64_t kLeafRows = 32;
inline constexpr int64_t kSharedMergeRows = 384;  // a merge of fewer is one task
// Returns the columns of the inner vectors to make at a time, for a matrix of n rows: few beside the matrix.
constexpr int64_t FactorColumns(int64_t n) { return std::clamp<int64_t>(n / 8, 64, 512); }
// A task takes some tens of µs: a root goes over all terms some five times, a weight once, and a copied column is two
// runs.
inline constexpr int64_t kRootsOfTask = 16;
inline constexpr int64_t kWeightsOfTask = 256;
inline constexpr int64_t kCopiesOfTask = 32;

// Half of the distance from 1 to the next number.
template <typename R>
inline constexpr R kRounding = std::numeric_limits<R>::epsilon() / 2;

// Leaves [begin, middle) and [middle, end), halves that become one.
struct LeafHalves {
  int64_t begin, middle, end;
};

// Rows from `begin` on, cut into 2^depth leaves.
class MergeTree {
 public:
  MergeTree(int64_t begin, int64_t size) : begin_(begin), size_(size) {
    while ((size_ >> depth_) > kLeafRows) ++depth_;
  }
  int64_t leaves() const { return int64_t{1} << depth_; }
  int64_t Bound(int64_t leaf) const { return begin_ + size_ * leaf / leaves(); }

  // Calls merge(halves) for all, from the leaves upwards, until `failed` is not 0: those of few rows are tasks, each of
  // the others has the pool for itself.
  void ForEachMerge(const std::atomic<int64_t>& failed, ThreadPool& pool,
                    absl::FunctionRef<void(const LeafHalves&)> merge) const {
    for (int64_t half = 1; half < leaves(); half *= 2) {
      const int64_t merges = leaves() / (2 * half);
      const auto merge_one = [&](int64_t index) {
        if (failed.load(std::memory_order_relaxed) != 0 || StopRequested()) return;
        const int64_t first = 2 * half * index;
        merge({.begin = first, .middle = first + half, .end = first + 2 * half});
      };
      if (size_ / merges + 1 < kSharedMergeRows) {
        pool.ParallelFor(merges, merge_one);
      } else {
        for (int64_t index = 0; index < merges; ++index) merge_one(index);
      }
    }
  }

 private:
  int64_t begin_, size_;
  int depth_ = 0;
};

// Keeps the first row at which an iteration failed, counted from 1; 0 before.
inline void KeepFirstFailure(int64_t row, std::atomic<int64_t>* failed) {
  int64_t known = failed->load(std::memory_order_relaxed);
  while ((known == 0 || row < known) && !failed->compare_exchange_weak(known, row, std::memory_order_relaxed)) {
  }
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_DIVIDED_MERGE_TREE_H_
