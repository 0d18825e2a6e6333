#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_MODE_PRODUCT_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_MODE_PRODUCT_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/contraction/mode_product_loops.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// The product of a small matrix and a tensor along some of its axes, wherever these and the new ones stand: the n-mode
// product of [Kolda and Bader, Tensor decompositions and applications, 2009], a gate on some qubits of a state. Vectors
// lie along an axis that tensor and result have as their first; the tensor is read as it lies, once.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail. Same bits for any number of
// threads.
class ModeProduct {
 public:
  // Plans the product; nothing if neither operand is such a matrix, or the machine lacks the loops.
  static std::optional<ModeProduct> Plan(const DotSpace& space, DType dtype, bool conjugates_lhs, bool conjugates_rhs);

  void Run(const char* lhs, const char* rhs, char* result, ThreadPool& pool) const;

 private:
  // A gate on four qubits is as large; the matrix is on the stack, 4 KiB of C128, and its offsets in arrays.
  static constexpr int64_t kMostRows = 16;
  static constexpr int64_t kMostTerms = 16;

  struct Loop {
    int64_t count = 0;
    int64_t x_step = 0;
    int64_t y_step = 0;
  };
  using Offsets = std::array<int64_t, kMostRows>;
  static_assert(kMostRows == kMostTerms);

  ModeProduct(const DotSpace& space, DType dtype, DotSide matrix);
  static bool IsMatrix(const DotSpace& space, DType dtype, DotSide side);
  void PlanTasks(const DotAxisList& free, DotSide tensor);
  template <typename Real, bool kIsComplex>
  void PackMatrix(const void* from, void* to) const;
  void RunTask(int64_t task, const ModeProductRuns& runs, const char* x, char* y) const;

  DType dtype_ = DType::kInvalid;
  int64_t element_bytes_ = 0;
  DotSide matrix_ = kLhs;
  bool conjugates_matrix_ = false;
  bool conjugates_tensor_ = false;
  int64_t rows_ = 0;
  int64_t terms_ = 0;
  Offsets matrix_rows_ = {}, matrix_terms_ = {};  // elements
  Offsets row_offsets_ = {}, term_offsets_ = {};
  // A task does so many runs of so many elements; the last along either axis may be shorter.
  Loop run_;            // elements of a run, all of them
  Loop runs_;           // from run to run
  int64_t length_ = 1;  // of a task
  int64_t count_ = 1;
  absl::InlinedVector<Loop, 4> loops_;  // over the other axes
  int64_t num_tasks_ = 0;
  int64_t x_ahead_ = 0;
  int64_t y_ahead_ = 0;
  ModeProductFunction multiply_ = nullptr;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_MODE_PRODUCT_H_
