#include "backends/cpu/kernel_table.h"

#include <array>

#include "backends/cpu/contraction/kernels.h"
#include "backends/cpu/contraction/window_dot_kernel.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/fused/kernel.h"
#include "backends/cpu/indexing/kernels.h"
#include "backends/cpu/layout/kernels.h"
#include "backends/cpu/reduce/kernels.h"
#include "engine/base/refusal.h"
#include "engine/fusion/fused_op.h"
#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> ConstantsHaveNoKernel(const BoundInstruction&) {
  return Refuse(Refusal::kInternal, "a constant reached the CPU as an instruction; the program holds it instead");
}

struct Entry {
  CoreOp op;
  MakeKernel* make;
};

constexpr Entry kEntries[] = {
#define TENSORD_UNARY(op, name, functor, summary) {CoreOp::op, &MakeElementwiseKernel},
#define TENSORD_BINARY(op, name, functor, traits, summary) {CoreOp::op, &MakeElementwiseKernel},
#define TENSORD_OP(op, definition)
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
    {CoreOp::kConstant, &ConstantsHaveNoKernel},
    {CoreOp::kIota, &MakeElementwiseKernel},
    {CoreOp::kCompare, &MakeElementwiseKernel},
    {CoreOp::kSelect, &MakeElementwiseKernel},
    {CoreOp::kClamp, &MakeElementwiseKernel},
    {CoreOp::kConvert, &MakeElementwiseKernel},
    {CoreOp::kTranspose, &MakeLayoutKernel},
    {CoreOp::kReshape, &MakeLayoutKernel},
    {CoreOp::kBroadcastInDim, &MakeLayoutKernel},
    {CoreOp::kReduce, &MakeReduceKernel},
    {CoreOp::kDotGeneral, &MakeDotKernel},
    {CoreOp::kGather, &MakeGatherKernel},
    {CoreOp::kScatter, &MakeScatterKernel},
    {CoreOp::kGatherDynamicSliceSizes, &MakeGatherKernel},
    {CoreOp::kSlice, &MakeLayoutKernel},
    {CoreOp::kPad, &MakeLayoutKernel},
    {CoreOp::kConcatenate, &MakeLayoutKernel},
    {CoreOp::kReverse, &MakeLayoutKernel},
    {CoreOp::kExtractDiag, &MakeLayoutKernel},
    {CoreOp::kEmbedDiag, &MakeLayoutKernel},
    {CoreOp::kTril, &MakeTriangleKernel},
    {CoreOp::kTriu, &MakeTriangleKernel},
    {CoreOp::kDynamicSlice, &MakeDynamicSliceKernel},
    {CoreOp::kDynamicUpdateSlice, &MakeDynamicUpdateSliceKernel},
    {CoreOp::kShapeOf, &MakeShapeOfKernel},
    {CoreOp::kPadToMatch, &MakeLayoutKernel},
    {CoreOp::kDynamicTruncate, &MakeLayoutKernel},
};

consteval std::array<MakeKernel*, kNumCoreOps> Table() {
  std::array<MakeKernel*, kNumCoreOps> table{};
  std::array<bool, kNumCoreOps> covered{};
  for (const Entry& entry : kEntries) {
    table[static_cast<size_t>(entry.op)] = entry.make;
    covered[static_cast<size_t>(entry.op)] = true;
  }
  for (bool has_entry : covered) {
    if (!has_entry) throw "a core op without an entry in the CPU's kernel table";
  }
  return table;
}
constexpr std::array<MakeKernel*, kNumCoreOps> kTable = Table();

}  // namespace

MakeKernel* FactoryOf(const OpDef& op) {
  if (IsFused(op)) return &MakeFusedKernel;
  if (IsAffineDot(op)) return &MakeAffineDotKernel;
  if (op.index >= kNumCoreOps || &op != &CoreOps()[op.index]) return nullptr;
  return kTable[op.index];
}

}  // namespace tensord::cpu
