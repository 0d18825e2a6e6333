#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_HALF_VECTOR_PRODUCT_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_HALF_VECTOR_PRODUCT_H_

#include <array>
#include <cstdint>
#include <optional>

#include "backends/cpu/contraction/contraction_plan.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/machine/thread_pool.h"
#include "backends/cpu/matmul/half_vector_loops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// Products of matrices of 16-bit floats and one or a few vectors, as a step of decoding makes them: the matrix is read
// once, as it lies, and widened on the way. Sums are made in F32, of up to 4,096 terms one after the other, whose sums
// follow each other likewise, and rounded once. Blocks of outputs and parts of the terms are tasks for the pool, cut by
// sizes alone: same bits for any number of threads.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail.
class HalfVectorProduct {
 public:
  // Plans the product; nothing unless one operand is such a matrix, dense along rows or columns, the other a few
  // vectors of 16-bit floats or F32, and the result is in either.
  static std::optional<HalfVectorProduct> Plan(const DotSpace& space, const std::array<DotOperand, 2>& operands,
                                               DType result_dtype);

  int64_t scratch_bytes() const;
  void Run(const char* lhs, const char* rhs, char* result, char* scratch, ThreadPool& pool) const;

 private:
  HalfVectorProduct(const DotSpace& space, const std::array<DotOperand, 2>& operands, DType result_dtype);
  void RunItem(int64_t item, const char* matrix, const char* vectors, char* result, float* partials) const;
  void WidenVector(const char* vector, int64_t terms, float* to) const;
  void Multiply(const uint16_t* a, int64_t outputs, int64_t terms, const float* x, float* sums) const;
  void Join(int64_t block, char* result, const float* partials) const;
  void Store(int64_t product, int64_t first, int64_t count, const float* sums, char* result) const;
  int64_t num_blocks() const { return (outputs_ + block_ - 1) / block_; }

  DotSide side_ = kLhs;  // of the matrix
  DType matrix_dtype_ = DType::kInvalid;
  DType vector_dtype_ = DType::kInvalid;
  DType result_dtype_ = DType::kInvalid;
  HalfVectorLoops loops_;
  bool is_by_columns_ = false;
  int64_t step_ = 0;  // of the matrix, between columns or rows
  DotAxis outputs_axis_, vectors_axis_, terms_axis_;
  int64_t outputs_ = 0;
  int64_t vectors_ = 0;
  int64_t terms_ = 0;
  DotAxisList batch_;
  int64_t num_products_ = 0;
  int64_t block_ = 1;  // of outputs
  int64_t part_ = 1;   // of terms
  int64_t num_parts_ = 1;
  int64_t items_per_task_ = 1;  // an item is a part of a block
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_HALF_VECTOR_PRODUCT_H_
