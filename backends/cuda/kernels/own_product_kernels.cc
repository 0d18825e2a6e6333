#include "backends/cuda/kernels/own_product_kernels.h"

#include "backends/cuda/kernels/own_product_text.h"
#include "backends/cuda/kernels/small_product_text.h"
#include "backends/cuda/kernels/text_kernel.h"

namespace tensord::cuda {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> OwnProduct(const ProductSpace& space, Algebra algebra,
                                                   const BoundInstruction& instruction, const KernelContext& context) {
  const bool is_small = IsSmallProduct(space);
  const KernelText text = (is_small ? SmallProductText : OwnProductText)(
      space, algebra, instruction.operands[0].dtype, instruction.results[0].dtype, context.compiler->printing());
  return TextKernel::Make(text, is_small ? "an element a thread" : "own tiles", context);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeOwnProductKernel(const BoundInstruction& instruction,
                                                             const KernelContext& context) {
  return OwnProduct(ProductSpaceOf(instruction), AlgebraOf(*instruction.attrs), instruction, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAffineProductKernel(const BoundInstruction& instruction,
                                                                const KernelContext& context) {
  return OwnProduct(AffineProductSpaceOf(instruction), Algebra::kStandard, instruction, context);
}

}  // namespace tensord::cuda
