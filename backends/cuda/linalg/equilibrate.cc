#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "backends/cuda/kernels/text_kernel.h"
#include "backends/cuda/linalg/determinants.h"
#include "backends/cuda/linalg/equilibrate_text.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

class EquilibrateKernel final : public MatrixKernel {
 public:
  explicit EquilibrateKernel(const BoundInstruction& instruction) : MatrixKernel(instruction, Refusal::kInternal) {
    exponents_ = Scratch(batch_ * 2 * n_ * 4);
    flags_ = Scratch(batch_ * 2 * 4);
  }

  absl::Status Prepare(const KernelContext& context) {
    ASSIGN_OR_RETURN(divide_, context.compiler->Compile(EquilibrateText(dtype_, n_, batch_, MostBlocks(context))));
    return absl::OkStatus();
  }

  absl::Status Enqueue(const Launch& launch) const override {
    return divide_->Enqueue(
        launch.stream,
        {launch.operands[0], launch.results[0], launch.results[1], exponents_.at(launch), flags_.at(launch)},
        launch.pace);
  }
  std::string Describe() const override {
    return n_ <= kMostSmallSize ? "a block a matrix" : absl::StrCat("parts of matrices, ", divide_->Describe());
  }
  bool captures() const override { return true; }

 private:
  ScratchPart exponents_;  // of the rows of each matrix, and then of its columns
  ScratchPart flags_;      // two ints a matrix
  std::shared_ptr<const LoadedKernel> divide_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeEquilibrate(const BoundInstruction& instruction,
                                                        const KernelContext& context) {
  const ConcreteType& operand = instruction.operands[0];
  if (operand.num_elements() == 0) {
    MatrixText text(operand.dtype, 1);
    text.Each("write_zeros", "const T*, T*, R* exponent", instruction.results[1].num_elements(),
              "    exponent[i] = 0;");
    return TextKernel::Make(text.Take(), "zeros", context);
  }
  auto kernel = std::make_unique<EquilibrateKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
