#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_PRODUCT_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_PRODUCT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/contraction/semiring/semiring_loops.h"
#include "backends/cpu/contraction/semiring/semiring_panels.h"
#include "backends/cpu/contraction/semiring/strip_product.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/ir/graph.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A planned dot_general in another algebra: over I32, I64 and floats in max_plus, min_plus and max_times, over BOOL in
// or_and. Operands and result have one dtype and any strides. Products and sums are as engine/ops/semiring.h says;
// F16 and BF16 are computed in F32 and rounded once, which gives the same, since rounding keeps the order of numbers.
//
// Vectors, a few of them and small matrices are a StripProduct. Other results are cut into blocks, which threads take
// one by one; a block goes over all terms, packing parts of both operands. Sums of numbers round nothing, so bits do
// not depend on threads or blocks.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail; it stops between parts.
class SemiringProduct {
 public:
  SemiringProduct(const DotSpace& space, Algebra algebra, DType dtype);

  // Returns the memory of the packed parts, bounded however large the tensors are.
  int64_t workspace_bytes() const { return strips_.has_value() ? strips_->workspace_bytes() : slots_ * slot_bytes_; }
  // Names the algebra and the way in which it multiplies.
  std::string Describe() const;
  // `workspace` is aligned to 64.
  void Run(const void* lhs, const void* rhs, void* result, void* workspace, ThreadPool& pool) const;

 private:
  // The memory of a thread.
  struct Slot;

  void ChooseBlocks();
  Slot MakeSlot(char* memory) const;
  void RunBlock(int64_t index, const char* lhs, const char* rhs, char* result, Slot& slot) const;
  void RunTerms(int64_t term, int64_t terms, const char* lhs, const char* rhs, Slot& slot, int64_t rows,
                int64_t columns) const;
  int64_t NumBlocks(DotRole role) const { return (sizes_[role] + block_[role] - 1) / block_[role]; }
  int64_t PackedRows(int64_t rows) const;

  // Constant after construction.
  DotSpace space_;
  Algebra algebra_;
  std::optional<StripProduct> strips_;  // then nothing below is set
  int64_t element_bytes_;
  bool swaps_ = false;  // lhs is taken for rhs
  SemiringPanels panels_;
  SemiringLoops loops_;
  std::array<int64_t, kNumDotRoles> sizes_ = {0, 0, 0, 0};
  std::array<int64_t, kNumDotRoles> block_ = {0, 0, 0, 1};
  int64_t num_blocks_ = 0;
  int64_t slots_ = 1;
  int64_t slot_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_PRODUCT_H_
