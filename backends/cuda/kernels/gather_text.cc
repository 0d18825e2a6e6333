#include "backends/cuda/kernels/gather_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/lines.h"
#include "backends/cuda/codegen/values.h"
#include "backends/cuda/kernels/index_text.h"
#include "backends/cuda/kernels/window_text.h"
#include "engine/base/rounding.h"
#include "engine/ops/index_windows.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kGatherThreads = 256;
constexpr int64_t kGatherBlocksPerProcessor = 16;
constexpr int64_t kGatherVectorBytes = 16;

// Returns the elements that a thread may move as one.
int64_t GatherWidth(const WindowLayout& layout, int64_t element_bytes) {
  if (layout.window.empty() || layout.window[0].windows_stride != 1 || layout.window[0].operand_stride != 1) return 1;
  int64_t width = kGatherVectorBytes / element_bytes;
  const auto divides = [&](int64_t w) {
    if (layout.window[0].size % w != 0) return false;
    for (size_t k = 1; k < layout.window.size(); ++k) {
      if (layout.window[k].operand_stride % w != 0) return false;
    }
    return std::all_of(layout.batch.begin(), layout.batch.end(),
                       [w](const auto& axis) { return axis.operand_stride % w == 0; }) &&
           std::all_of(layout.components.begin(), layout.components.end(),
                       [w](const auto& component) { return component.operand_stride % w == 0; });
  };
  while (width > 1 && !divides(width)) width /= 2;
  return width;
}

// Returns the layout in vectors: only the window's fastest axis has elements.
WindowLayout InVectors(WindowLayout layout, int64_t width) {
  if (width == 1) return layout;
  layout.window[0].size /= width;
  for (size_t k = 1; k < layout.window.size(); ++k) {
    layout.window[k].operand_stride /= width;
    layout.window[k].windows_stride /= width;
  }
  for (WindowLayout::BatchAxis& axis : layout.batch) {
    axis.operand_stride /= width;
    axis.windows_stride /= width;
  }
  for (WindowLayout::Component& component : layout.components) component.operand_stride /= width;
  return layout;
}

void WriteLoop(CudaLines* lines, const WindowLayout& layout, DType index_dtype, int64_t groups, int64_t step,
               const std::string& type) {
  const absl::string_view index = IndexType(groups), suffix = IndexSuffix(groups);
  lines->Line("const ", type, "* const source = reinterpret_cast<const ", type, "*>(from);");
  lines->Raw("#pragma unroll 4");
  lines->Open("for (", index, " i = blockIdx.x * (", index, ")", kGatherThreads, " + threadIdx.x; i < ", groups, suffix,
              "; i += (", index, ")", step, ")");
  const WindowText windows(layout, index_dtype);
  const WindowText::Place place = windows.WriteElement(lines, "i");
  windows.WriteStart(lines, place, /*skips=*/false);
  lines->Line("reinterpret_cast<", type, "*>(into)[i] = source[start + ", windows.InnerOffset(place), "];");
  lines->Close();
}

}  // namespace

KernelText GatherText(const BoundInstruction& instruction, const CudaOptions& options) {
  const ConcreteType &operand = instruction.operands[0], &indices = instruction.operands[1];
  const ConcreteType& result = instruction.results[0];
  const WindowAxes axes = WindowAxes::Of(*instruction.attrs, kGatherNames);
  const WindowLayout layout =
      WindowLayout::Of(axes, operand.shape, indices, result.shape, axes.IndicesBatchAxes(indices.rank()));
  const int64_t element_bytes = SizeOf(operand.dtype), width = GatherWidth(layout, element_bytes);
  const int64_t groups = result.num_elements() / width;
  KernelText text;
  text.launches.push_back(
      {.entry = "gather",
       .blocks = std::min(CeilDiv(groups, kGatherThreads), int64_t{options.num_processors} * kGatherBlocksPerProcessor),
       .threads_per_block = kGatherThreads,
       .arguments = {0, 1, static_cast<int32_t>(instruction.operands.size())}});
  const int64_t blocks = text.launches[0].blocks;
  CudaLines lines;
  const std::string moved = MovedType(element_bytes, &lines.prelude());
  lines.Open("extern \"C\" __global__ void __launch_bounds__(", kGatherThreads, ") gather(const ", moved,
             "* __restrict__ from, const ", CudaType(indices.dtype), "* __restrict__ indices, ", moved,
             "* __restrict__ into)");
  if (width > 1) {
    lines.prelude().Use("Vector");
    lines.Open("if (((u64)from | (u64)into) % ", width * element_bytes, " == 0)");
    WriteLoop(&lines, InVectors(layout, width), indices.dtype, groups, blocks * kGatherThreads,
              absl::StrCat("Vector<", moved, ", ", width, ">"));
    lines.Line("return;");
    lines.Close();
  }
  WriteLoop(&lines, layout, indices.dtype, result.num_elements(), blocks * kGatherThreads, moved);
  lines.Close();
  text.source = lines.Source();
  return text;
}

}  // namespace tensord::cuda
