#include "backends/cuda/linalg/small_kernel.h"

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/small_texts.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

// A text that takes the operand, the results, and the verdict if it judges.
class SmallKernel final : public MatrixKernel {
 public:
  SmallKernel(const BoundInstruction& instruction, Refusal refusal, bool judges)
      : MatrixKernel(instruction, refusal), takes_verdict_(judges) {}

  SmallMatrices matrices(const KernelContext& context) const {
    return {.dtype = dtype_, .rows = m_, .columns = n_, .batch = batch_, .most_blocks = MostBlocks(context)};
  }
  absl::Status Prepare(const KernelContext& context, const KernelText& text) {
    lanes_ = matrices(context).group();
    ASSIGN_OR_RETURN(loaded_, context.compiler->Compile(text));
    return absl::OkStatus();
  }

  absl::Status Enqueue(const Launch& launch) const override {
    absl::InlinedVector<CuAddress, 5> pointers = {launch.operands[0]};
    pointers.insert(pointers.end(), launch.results.begin(), launch.results.end());
    if (takes_verdict_) pointers.push_back(launch.verdict);
    return loaded_->Enqueue(launch.stream, pointers, launch.pace);
  }
  bool captures() const override { return true; }
  bool judges() const override { return takes_verdict_; }
  // What judges is what goes on until it converges.
  bool varies() const override { return takes_verdict_; }
  std::string Describe() const override { return absl::StrCat(lanes_, " lanes a matrix, ", loaded_->Describe()); }

 private:
  const bool takes_verdict_;
  int lanes_ = 0;
  std::shared_ptr<const LoadedKernel> loaded_;
};

}  // namespace

bool HasSmallMatrices(const BoundInstruction& instruction) {
  const Shape& shape = instruction.operands[0].shape;
  return shape[0] <= kMostSmallSize && shape[1] <= kMostSmallSize;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallQr(const BoundInstruction& instruction, const KernelContext& context) {
  auto kernel = std::make_unique<SmallKernel>(instruction, Refusal::kInternal, /*judges=*/false);
  const int64_t q_columns = instruction.results[0].shape[1];
  RETURN_IF_ERROR(kernel->Prepare(context, SmallQrText(kernel->matrices(context), q_columns)));
  return kernel;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallReflectors(const BoundInstruction& instruction,
                                                            const KernelContext& context) {
  auto kernel = std::make_unique<SmallKernel>(instruction, Refusal::kInternal, /*judges=*/false);
  RETURN_IF_ERROR(kernel->Prepare(context, SmallReflectorsText(kernel->matrices(context))));
  return kernel;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallEigh(const BoundInstruction& instruction, const KernelContext& context,
                                                      int most_sweeps) {
  auto kernel = std::make_unique<SmallKernel>(instruction, Refusal::kNoConvergence, /*judges=*/true);
  const bool has_vectors = instruction.results.size() == 2;
  RETURN_IF_ERROR(kernel->Prepare(context, SmallEighText(kernel->matrices(context), has_vectors, most_sweeps)));
  return kernel;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallSvd(const BoundInstruction& instruction, const KernelContext& context,
                                                     int most_sweeps) {
  auto kernel = std::make_unique<SmallKernel>(instruction, Refusal::kNoConvergence, /*judges=*/true);
  SmallSvdVectors vectors;
  if (instruction.results.size() == 3) {
    vectors = {.u_columns = instruction.results[0].shape[1], .vh_rows = instruction.results[2].shape[0]};
  }
  RETURN_IF_ERROR(kernel->Prepare(context, SmallSvdText(kernel->matrices(context), vectors, most_sweeps)));
  return kernel;
}

}  // namespace tensord::cuda
