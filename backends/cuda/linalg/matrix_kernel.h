#ifndef TENSORD_BACKENDS_CUDA_LINALG_MATRIX_KERNEL_H_
#define TENSORD_BACKENDS_CUDA_LINALG_MATRIX_KERNEL_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/linalg/solver_call.h"
#include "engine/base/refusal.h"

namespace tensord::cuda {

// A place in a kernel's scratch.
struct ScratchPart {
  int64_t offset = 0;
  CuAddress at(const Launch& launch) const { return launch.scratch + static_cast<CuAddress>(offset); }
};

// Matrices of up to so many rows and columns are factored by texts of ours, a block a matrix: a call of a library takes
// longer than all its work, and a batch is a call a matrix.
inline constexpr int64_t kMostSmallSize = 32;
// The most right-hand sides that a block solves for: it has a thread for each.
inline constexpr int64_t kMostSmallSides = 256;

// A kernel over a batch of matrices: texts of ours around calls of cuSOLVER, one matrix after the other. Each call has
// a status on the device, and the first that failed is the run's refusal.
class MatrixKernel : public Kernel {
 public:
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  bool captures() const override { return false; }  // solvers may wait for the device
  bool judges() const override { return judges_; }
  absl::Status Refused(const Verdict& verdict) const override;

 protected:
  // Return the address of an element, a pointer to an address, and one to a matrix's status.
  static CuAddress Element(CuAddress base, int64_t index, DType dtype) {
    return base + static_cast<CuAddress>(index * SizeOf(dtype));
  }
  static void* Pointer(CuAddress address) { return reinterpret_cast<void*>(address); }
  static int* Info(CuAddress infos, int64_t matrix) {
    return reinterpret_cast<int*>(infos + static_cast<CuAddress>(matrix * 4));
  }

  // Takes the sizes of the first operand; `refusal` is what a positive status means.
  MatrixKernel(const BoundInstruction& instruction, Refusal refusal);

  ScratchPart Scratch(int64_t bytes);
  // Has scratch for a status for each matrix, and prints the text that finds the first bad one. `broken_diagonals`
  // looks for NaN on the diagonals of n x n results as well.
  absl::Status Judge(const KernelContext& context, bool broken_diagonals = false);
  // Enqueues it; `results` are those with the diagonals.
  absl::Status EnqueueJudgement(const Launch& launch, CuAddress results = 0) const;

  // Asks for the workspaces of a function on matrices of the operand, see solver_call.h.
  absl::StatusOr<SolverWork> AskSolver(Libraries* libraries, absl::string_view function,
                                       absl::FunctionRef<SolverResult(const SolverScope&, SolverWork*)> ask) const;

  // Returns a text's most blocks.
  static int64_t MostBlocks(const KernelContext& context);
  // Checks that sizes are within what cuSOLVER counts to.
  absl::Status CheckSizes() const;

  const DType dtype_;
  const DType real_;
  const SolverTypes types_;
  const int64_t m_, n_, batch_;  // the operand's
  ScratchPart infos_;            // an int a matrix

 private:
  const Shape shape_;
  const Refusal refusal_;
  const std::string name_;
  bool judges_ = false;
  std::shared_ptr<const LoadedKernel> judge_;
  int64_t scratch_bytes_ = 0;
};

// The matrices that a solver destroys: copies of the operand's, without those that are not finite.
class GuardedMatrices {
 public:
  GuardedMatrices() = default;
  ScratchPart is_broken, largest;
  std::shared_ptr<const LoadedKernel> load;

  absl::Status Enqueue(const Launch& launch, CuAddress into) const {
    return load->Enqueue(launch.stream, {launch.operands[0], into, is_broken.at(launch), largest.at(launch)});
  }
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_MATRIX_KERNEL_H_
