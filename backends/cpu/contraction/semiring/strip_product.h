#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_STRIP_PRODUCT_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_STRIP_PRODUCT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/contraction/semiring/strip_loops.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/ir/graph.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A planned dot_general in another algebra that is not worth packing: products with vectors and with a few of them, dot
// products, batches of small matrices. Operands are read once, as they lie; a small one that lies otherwise is copied.
// Cut by sizes alone into tasks: same bits for any number of threads.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail; it stops between tasks.
class StripProduct {
 public:
  // Plans the product; nothing if packing is better, or its axes form no matrices. 16-bit floats are always packed.
  static std::optional<StripProduct> Plan(const DotSpace& space, Algebra algebra, DType dtype);

  // Returns the memory of what is copied.
  int64_t workspace_bytes() const { return slots_ * slot_bytes_; }
  // Names the way in which it multiplies.
  absl::string_view way() const;
  // `workspace` is aligned to 64.
  void Run(const void* lhs, const void* rhs, void* result, void* workspace, ThreadPool& pool) const;

 private:
  enum class Way : uint8_t { kAlongRows, kAlongTerms, kCopied };

  StripProduct() = default;
  // Plans it with the operands as they are; false if rows or terms do not suit.
  bool PlanAsIs(const DotSpace& space);
  void CutTasks();
  void RunTask(int64_t task, const char* lhs, const char* rhs, char* result, char* slot) const;
  void RunMatrix(SemiringStrip strip, char* slot) const;

  // Constant after Plan.
  DotSpace space_;
  bool swaps_ = false;  // lhs is taken for rhs
  Way way_ = Way::kAlongRows;
  int64_t unit_ = 1;  // bytes of an element
  StripLoops loops_;
  SemiringStrip matrix_;  // without addresses
  int64_t batch_ = 1;
  int64_t products_ = 0;  // of a matrix
  int64_t matrices_a_task_ = 1;
  int64_t row_tasks_ = 1;  // of a matrix
  int64_t rows_a_task_ = 0;
  int64_t num_tasks_ = 1;
  int64_t slots_ = 0;
  int64_t slot_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_STRIP_PRODUCT_H_
