#include "backends/cuda/kernel_table.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "backends/cuda/fft/fft_kernel.h"
#include "backends/cuda/kernels/dot_kernel.h"
#include "backends/cuda/kernels/indexing_kernels.h"
#include "backends/cuda/kernels/layout_kernels.h"
#include "backends/cuda/kernels/own_product_kernels.h"
#include "backends/cuda/kernels/printed_kernel.h"
#include "backends/cuda/linalg/kernels.h"
#include "engine/base/refusal.h"
#include "engine/fusion/fused_op.h"
#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"

namespace tensord::cuda {
namespace {

struct Entry {
  CoreOp op;
  OpKernels kernels;
};

constexpr OpKernels kNoKernels = {};
constexpr OpKernels kPrinted = {&MakePrintedKernel, kAnyDType};
constexpr OpKernels kCopied = {&MakeLayoutKernel, kAnyDType};
constexpr OpKernels kTriangle = {&MakeTriangleKernel, kAnyDType};
constexpr OpKernels kGathered = {&MakeGatherKernel, kAnyDType};

// Constants lie in the program.
constexpr Entry kEntries[] = {
#define TENSORD_UNARY(op, name, functor, summary) {CoreOp::op, kPrinted},
#define TENSORD_BINARY(op, name, functor, traits, summary) {CoreOp::op, kPrinted},
#define TENSORD_OP(op, definition)
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
    {CoreOp::kConstant, kNoKernels},
    {CoreOp::kIota, kPrinted},
    {CoreOp::kCompare, kPrinted},
    {CoreOp::kSelect, kPrinted},
    {CoreOp::kClamp, kPrinted},
    {CoreOp::kConvert, kPrinted},
    {CoreOp::kTranspose, kCopied},
    {CoreOp::kReshape, kCopied},
    {CoreOp::kBroadcastInDim, kCopied},
    {CoreOp::kReduce, kPrinted},
    {CoreOp::kDotGeneral, {&MakeDotKernel, kAnyDType}},
    {CoreOp::kGather, kGathered},
    {CoreOp::kScatter, {&MakeScatterKernel, kAnyDType}},
    {CoreOp::kGatherDynamicSliceSizes, kGathered},
    {CoreOp::kSlice, kCopied},
    {CoreOp::kPad, kCopied},
    {CoreOp::kConcatenate, kCopied},
    {CoreOp::kReverse, kCopied},
    {CoreOp::kExtractDiag, kCopied},
    {CoreOp::kEmbedDiag, kCopied},
    {CoreOp::kTril, kTriangle},
    {CoreOp::kTriu, kTriangle},
    {CoreOp::kDynamicSlice, {&MakeDynamicSliceKernel, kAnyDType}},
    {CoreOp::kDynamicUpdateSlice, {&MakeDynamicUpdateSliceKernel, kAnyDType}},
    {CoreOp::kShapeOf, {&MakeShapeOfKernel, kAnyDType}},
    {CoreOp::kPadToMatch, kCopied},
    {CoreOp::kDynamicTruncate, kCopied},
    {CoreOp::kOptimizationBarrier, kCopied},
};

consteval std::array<OpKernels, kNumCoreOps> Table() {
  std::array<OpKernels, kNumCoreOps> table{};
  std::array<bool, kNumCoreOps> covered{};
  for (const Entry& entry : kEntries) {
    table[static_cast<size_t>(entry.op)] = entry.kernels;
    covered[static_cast<size_t>(entry.op)] = true;
  }
  for (bool has_entry : covered) {
    if (!has_entry) throw "a core op without an entry in CUDA's kernel table";
  }
  return table;
}
constexpr std::array<OpKernels, kNumCoreOps> kTable = Table();

// The kernels of families, a table a room.
using Families = absl::flat_hash_map<absl::string_view, OpKernels>;
const Families& BuiltIn() {
  static const Families* const families = [] {
    auto* all = new Families();
    const std::initializer_list<absl::Span<const FamilyKernel>> tables = {FftKernels(), LinalgKernels()};
    for (absl::Span<const FamilyKernel> table : tables) {
      for (const FamilyKernel& kernel : table) all->emplace(kernel.op, OpKernels{kernel.make, kernel.dtypes});
    }
    return all;
  }();
  return *families;
}

}  // namespace

OpKernels KernelsOf(const OpDef& op) {
  if (IsFused(op)) return kPrinted;
  if (IsAffineDot(op)) return {&MakeAffineProductKernel, kAnyDType};
  if (op.op_class == OpClass::kExtension) {
    const auto it = BuiltIn().find(op.name);
    return it == BuiltIn().end() ? kNoKernels : it->second;
  }
  if (op.index >= kNumCoreOps || &op != &CoreOps()[op.index]) return kNoKernels;
  return kTable[op.index];
}

bool HasKernel(const OpDef& op, DType first) {
  const OpKernels kernels = KernelsOf(op);
  return kernels.make != nullptr && kernels.dtypes.Contains(first) && (IsFused(op) || op.dtypes.Contains(first));
}

absl::Status CheckHasKernel(absl::string_view device, const OpDef& op, absl::Span<const DType> operands, DType result) {
  const DType first = operands.empty() ? result : operands[0];
  if (HasKernel(op, first)) return absl::OkStatus();
  return Refuse(Refusal::kUnsupportedOnDevice,
                absl::StrCat("the device ", device, " cannot run ", op.name, " on ", Name(first)));
}

absl::Status AuditFamilyKernels(absl::Span<const FamilyKernel> kernels, absl::Span<const OpDef> ops) {
  const auto wrong = [](auto... parts) { return absl::InvalidArgumentError(absl::StrCat(parts...)); };
  absl::flat_hash_set<absl::string_view> names;
  for (const FamilyKernel& kernel : kernels) {
    const auto op = std::find_if(ops.begin(), ops.end(), [&](const OpDef& def) { return def.name == kernel.op; });
    if (op == ops.end()) {
      return wrong("it has a CUDA kernel of \"", kernel.op, "\", which is no op of its family: write OpDef::name");
    }
    if (op->expand.has()) return wrong("the op ", op->name, " is expanded, and its CUDA kernel would never run");
    if (kernel.make == nullptr) return wrong("the CUDA kernel of the op ", op->name, " has no function that makes it");
    for (const DType dtype : kAllDTypes) {
      if (kernel.dtypes.Contains(dtype) && !op->dtypes.Contains(dtype)) {
        return wrong("the op ", op->name, " has a CUDA kernel on ", Name(dtype), ", which it refuses");
      }
    }
    if (!names.insert(kernel.op).second) return wrong("the op ", op->name, " has two CUDA kernels");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeKernelOf(const BoundInstruction& instruction,
                                                     const KernelContext& context) {
  const auto is_empty = [](const ConcreteType& type) { return type.num_elements() == 0; };
  if (absl::c_all_of(instruction.results, is_empty)) return std::make_unique<NothingToDo>();
  if (instruction.micro != nullptr) return MakePrintedKernel(instruction, context);
  if (const OpKernels kernels = KernelsOf(*instruction.op); kernels.make != nullptr) {
    return kernels.make(instruction, context);
  }
  return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("CUDA devices have no kernel of ", instruction.op->name));
}

}  // namespace tensord::cuda
