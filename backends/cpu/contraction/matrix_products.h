#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_MATRIX_PRODUCTS_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_MATRIX_PRODUCTS_H_

#include <cstdint>

#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/machine/thread_pool.h"
#include "backends/cpu/matmul/gemm.h"

namespace tensord::cpu {

// The products of matrices that a box of a contraction consists of: the first axes of each role, as far as they are one
// axis, make the matrices; the others are walked over, along the summed axes adding to the result. Products, and blocks
// of large ones, are tasks for the pool, cut by sizes alone: same bits for any number of threads.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail.
class DotProducts {
 public:
  // The matrices of a box; the conjugations are the caller's to add.
  static MatrixProduct Matrices(const DotSpace& box);

  DotProducts() = default;
  DotProducts(const DotSpace& box, DType dtype, bool conjugates_lhs, bool conjugates_rhs);

  // Bytes of scratch for partial sums.
  int64_t partial_bytes() const { return gemm_.partial_bytes(); }
  // `accumulates`: adds to the result.
  void Run(const char* lhs, const char* rhs, char* result, char* partials, bool accumulates, ThreadPool& pool) const;

 private:
  struct Loop {
    int64_t count = 0;
    int64_t steps[kNumDotSides] = {0, 0, 0};  // bytes
  };
  void AddLoops(const DotAxisList& axes, size_t first, absl::InlinedVector<Loop, 4>* loops) const;
  void RunItems(int64_t item, int64_t count, const char* lhs, const char* rhs, char* result, char* partials,
                bool accumulates) const;

  int64_t element_bytes_ = 1;
  absl::InlinedVector<Loop, 4> loops_;  // over products with results of their own, the fastest first
  absl::InlinedVector<Loop, 4> sums_;   // over products that are added up
  int64_t num_sums_ = 1;
  Gemm gemm_;
  int64_t num_items_ = 0;  // blocks of all products
  int64_t items_per_task_ = 1;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_MATRIX_PRODUCTS_H_
