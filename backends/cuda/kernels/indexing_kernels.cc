#include "backends/cuda/kernels/indexing_kernels.h"

#include <utility>
#include <vector>

#include "backends/cuda/kernels/copy_text.h"
#include "backends/cuda/kernels/gather_text.h"
#include "backends/cuda/kernels/scatter_text.h"
#include "backends/cuda/kernels/text_kernel.h"
#include "engine/base/status_macros.h"
#include "engine/ops/dynamic_slicing.h"

namespace tensord::cuda {
namespace {

CopyAxes WindowCopyAxes(const Shape& sizes, const Shape& src_strides, const Shape& dst_strides) {
  CopyAxes axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({sizes[i], src_strides[i], dst_strides[i]});
  return axes;
}

// Returns the start of a window of a tensor, in elements.
ReadStart WindowStartOf(const ConcreteType& whole, const Shape& window, int pointer, DType index_dtype,
                        const Attributes& attrs) {
  const Shape strides = ColumnMajorStrides(whole.shape);
  ReadStart start{.pointer = pointer, .dtype = index_dtype};
  for (int64_t axis : StartAxes(attrs, whole.rank())) {
    const size_t k = static_cast<size_t>(axis);
    start.entries.push_back({whole.shape[k] - window[k], strides[k]});
  }
  return start;
}

}  // namespace

KernelText DynamicSliceText(const BoundInstruction& instruction, const CudaOptions& options) {
  const ConcreteType& operand = instruction.operands[0];
  const Shape& window = instruction.results[0].shape;
  CopyStage stage;
  stage.parts.push_back(
      {.axes = WindowCopyAxes(window, ColumnMajorStrides(operand.shape), ColumnMajorStrides(window)),
       .from = {.pointer = 0,
                .start = WindowStartOf(operand, window, 1, instruction.operands[1].dtype, *instruction.attrs)},
       .into = {.pointer = 2}});
  return CopyText({stage}, SizeOf(operand.dtype), 0, options);
}

KernelText DynamicUpdateSliceText(const BoundInstruction& instruction, const CudaOptions& options) {
  const ConcreteType &operand = instruction.operands[0], &update = instruction.operands[1];
  std::vector<CopyStage> stages;
  // A window that is the whole leaves nothing of the operand.
  if (update.shape != operand.shape) {
    CopyStage& whole = stages.emplace_back();
    whole.parts.push_back({.axes = {{operand.num_elements(), 1, 1}}, .from = {.pointer = 0}, .into = {.pointer = 3}});
    whole.unless_same = {0, 3};
  }
  if (update.num_elements() > 0) {
    stages.emplace_back().parts.push_back(
        {.axes = WindowCopyAxes(update.shape, ColumnMajorStrides(update.shape), ColumnMajorStrides(operand.shape)),
         .from = {.pointer = 1},
         .into = {
             .pointer = 3,
             .start = WindowStartOf(operand, update.shape, 2, instruction.operands[2].dtype, *instruction.attrs)}});
  }
  return CopyText(stages, SizeOf(operand.dtype), 0, options);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDynamicSliceKernel(const BoundInstruction& instruction,
                                                               const KernelContext& context) {
  return TextKernel::Make(DynamicSliceText(instruction, context.compiler->printing()), "copied", context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDynamicUpdateSliceKernel(const BoundInstruction& instruction,
                                                                     const KernelContext& context) {
  return TextKernel::Make(DynamicUpdateSliceText(instruction, context.compiler->printing()), "copied", context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGatherKernel(const BoundInstruction& instruction,
                                                         const KernelContext& context) {
  return TextKernel::Make(GatherText(instruction, context.compiler->printing()), "gathered", context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeScatterKernel(const BoundInstruction& instruction,
                                                          const KernelContext& context) {
  ASSIGN_OR_RETURN(const ScatterKernelText scatter, ScatterText(instruction, context.compiler->printing()));
  return TextKernel::Make(scatter.text, scatter.way, context);
}

}  // namespace tensord::cuda
