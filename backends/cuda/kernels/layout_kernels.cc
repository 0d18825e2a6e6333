#include "backends/cuda/kernels/layout_kernels.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/lines.h"
#include "backends/cuda/kernels/copy_text.h"
#include "backends/cuda/kernels/index_text.h"
#include "backends/cuda/kernels/text_kernel.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/exec/backend/layout_copies.h"
#include "engine/ops/triangle.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kTriangleThreads = 256;

}  // namespace

// Prints tril or triu: each element, or zero. All axes before the faster axis of the matrices are one, and so are those
// between the two.
KernelText TriangleText(const BoundInstruction& instruction, const CudaOptions& options) {
  const ConcreteType& type = instruction.operands[0];
  const auto [row, column] = MatrixAxes(*instruction.attrs);
  const size_t fast = static_cast<size_t>(std::min(row, column)), slow = static_cast<size_t>(std::max(row, column));
  std::vector<int64_t> sizes(5, 1);
  for (size_t d = 0; d < type.shape.size(); ++d) {
    sizes[d < fast ? 0 : d == fast ? 1 : d < slow ? 2 : d == slow ? 3 : 4] *= type.shape[d];
  }
  const int64_t count = type.num_elements(), element_bytes = SizeOf(type.dtype);
  // Diagonals outside of the matrix are all the same, and may be too far away to compute with.
  const int64_t rows = type.shape[static_cast<size_t>(row)], columns = type.shape[static_cast<size_t>(column)];
  const int64_t diagonal = std::clamp(instruction.attrs->Int("diagonal"), -rows, columns);
  int64_t width = 16 / element_bytes;
  while (count % width != 0) width /= 2;
  const int64_t groups = count / width;
  KernelText text;
  text.launches.push_back({.entry = "triangle",
                           .blocks = std::min(CeilDiv(groups, kTriangleThreads), int64_t{options.num_processors} * 16),
                           .threads_per_block = kTriangleThreads});
  const int64_t step = text.launches[0].blocks * kTriangleThreads;
  CudaLines lines;
  const std::string moved = MovedType(element_bytes, &lines.prelude());
  lines.prelude().Use("Vector");
  const absl::string_view index = IndexType(count), suffix = IndexSuffix(count);
  lines.Open("extern \"C\" __global__ void __launch_bounds__(", kTriangleThreads, ") triangle(const ", moved,
             "* __restrict__ from, ", moved, "* __restrict__ into)");
  lines.Line("const bool wide = ((u64)from | (u64)into) % ", width * element_bytes, " == 0;");
  lines.Open("for (", index, " g = blockIdx.x * (", index, ")", kTriangleThreads, " + threadIdx.x; g < ", groups,
             suffix, "; g += (", index, ")", step, ")");
  lines.Line("Vector<", moved, ", ", width, "> x;");
  lines.Line("if (wide) x = LoadVector<", width, ">(from + (u64)g * ", width, ");");
  lines.Raw("#pragma unroll");
  lines.Open("for (int j = 0; j < ", width, "; ++j)");
  lines.Line("const ", index, " i = g * ", width, suffix, " + j;");
  const std::vector<std::string> names = WriteCoordinates(&lines, "i", sizes, "i", {false, true, false, true, false});
  const std::string along_rows = row < column ? names[1] : names[3], along_columns = row < column ? names[3] : names[1];
  lines.Line("const bool keeps = (i64)", along_columns, " - (i64)", along_rows,
             Is(*instruction.op, CoreOp::kTril) ? " <= " : " >= ", diagonal, "ll;");
  lines.Line("if (!wide) x.at[j] = from[i];");
  lines.Line("if (!keeps) x.at[j] = ", moved, "{};");
  lines.Line("if (!wide) into[i] = x.at[j];");
  lines.Close();
  lines.Line("if (wide) StoreVector(into + (u64)g * ", width, ", x);");
  lines.Close();
  lines.Close();
  text.source = lines.Source();
  return text;
}

absl::StatusOr<KernelText> LayoutText(const BoundInstruction& instruction, const CudaOptions& options) {
  ASSIGN_OR_RETURN(const LayoutCopies copies, LayoutCopiesOf(instruction));
  const ConcreteType& result = instruction.results[0];
  const int into = static_cast<int>(instruction.operands.size()), scratch = into + 1;
  std::vector<CopyStage> stages;
  for (const LayoutCopy& copy : copies.copies) {
    if (stages.empty() || copy.follows) stages.emplace_back();
    CopyPart part{.axes = copy.axes,
                  .from = {.pointer = copy.from == LayoutCopy::kScratch ? scratch
                                      : copy.from == LayoutCopy::kZero  ? CopySide::kZero
                                                                        : copy.from,
                           .offset = copy.from_offset},
                  .into = {.pointer = copy.into_scratch ? scratch : into, .offset = copy.into_offset}};
    stages.back().parts.push_back(std::move(part));
  }
  return CopyText(stages, SizeOf(result.dtype), copies.needs_scratch ? result.num_bytes() : 0, options);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLayoutKernel(const BoundInstruction& instruction,
                                                         const KernelContext& context) {
  ASSIGN_OR_RETURN(const KernelText text, LayoutText(instruction, context.compiler->printing()));
  return TextKernel::Make(text, "copied", context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTriangleKernel(const BoundInstruction& instruction,
                                                           const KernelContext& context) {
  return TextKernel::Make(TriangleText(instruction, context.compiler->printing()), "triangle", context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeShapeOfKernel(const BoundInstruction& instruction,
                                                          const KernelContext& context) {
  const size_t axis = static_cast<size_t>(instruction.attrs->Int("dimension"));
  CudaLines lines;
  lines.prelude().Use("Types");
  lines.Line("extern \"C\" __global__ void shape_of(i64* size) { *size = ", instruction.operands[0].shape[axis],
             "ll; }");
  KernelText text{.source = lines.Source()};
  text.launches.push_back({.entry = "shape_of", .arguments = {static_cast<int32_t>(instruction.operands.size())}});
  return TextKernel::Make(text, "a constant", context);
}

}  // namespace tensord::cuda
