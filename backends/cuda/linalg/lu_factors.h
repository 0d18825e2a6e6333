#ifndef TENSORD_BACKENDS_CUDA_LINALG_LU_FACTORS_H_
#define TENSORD_BACKENDS_CUDA_LINALG_LU_FACTORS_H_

#include "backends/cuda/linalg/division_text.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"

namespace tensord::cuda {

// A kernel that needs LU factors of its first operand: in scratch, with LAPACK's pivots. Matrices that are not finite
// are factored as the identity. What has to be done again by division is left to the kernel's own text.
class LuKernel : public MatrixKernel {
 protected:
  LuKernel(const BoundInstruction& instruction, Refusal refusal);

  // Ask no library where `is_small`: the factors are the matrices themselves then, for the kernel's own text.
  absl::Status PrepareFactors(const KernelContext& context, bool is_small);
  // Adds the entry that divides where libraries cannot, with a parameter `int* is_divided` among `parameters`, and the
  // constants kM, kN and kK ahead of `functions`. `small`: what a block does with each matrix instead; null: they are
  // not small.
  void AddDivision(const KernelContext& context, absl::string_view parameters, absl::string_view functions,
                   const char* small, MatrixText* text);
  // Tells whether a matrix may take several launches more than others.
  bool varies() const override { return factor_turns_.count > 1; }
  // Enqueues the first parts of `parts`, one a matrix; none where `is_small`.
  absl::Status EnqueueFactors(const Launch& launch, int64_t parts) const;

  GuardedMatrices guarded_;
  ScratchPart factors_;
  ScratchPart pivots_;      // min(m, n) numbers of 64 bits a matrix, from 1
  ScratchPart is_divided_;  // an int a matrix
  DivisionTurns factor_turns_;

 private:
  bool is_small_ = false;  // constant after PrepareFactors
  SolverWork work_;
  ScratchPart device_work_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_LU_FACTORS_H_
