#include "backends/cpu/kernel_table.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/contraction/kernels.h"
#include "backends/cpu/contraction/window_dot_kernel.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/fft/kernels.h"
#include "backends/cpu/fused/kernel.h"
#include "backends/cpu/indexing/kernels.h"
#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/layout/kernels.h"
#include "backends/cpu/linalg/kernels.h"
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
    {CoreOp::kOptimizationBarrier, &MakeLayoutKernel},
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

using Factories = absl::flat_hash_map<absl::string_view, MakeFamilyKernel*>;

// Returns the tables of the families that are built in.
const Factories& BuiltIn() {
  static const Factories* const factories = [] {
    auto* all = new Factories();
    const std::initializer_list<absl::Span<const FamilyKernel>> tables = {FftKernels(), LinalgKernels()};
    for (absl::Span<const FamilyKernel> table : tables) {
      for (const FamilyKernel& kernel : table) all->emplace(kernel.op, kernel.make);
    }
    return all;
  }();
  return *factories;
}

}  // namespace

MakeKernel* FactoryOf(const OpDef& op) {
  if (IsFused(op)) return &MakeFusedKernel;
  if (IsAffineDot(op)) return &MakeAffineDotKernel;
  if (op.index >= kNumCoreOps || &op != &CoreOps()[op.index]) return nullptr;
  return kTable[op.index];
}

MakeFamilyKernel* FamilyFactoryOf(const OpDef& op) {
  const auto it = BuiltIn().find(op.name);
  return it == BuiltIn().end() ? nullptr : it->second;
}

absl::Status AuditFamilyKernels(absl::Span<const FamilyKernel> kernels, absl::Span<const OpDef> ops) {
  const auto wrong = [](auto... what) { return absl::InvalidArgumentError(absl::StrCat(what...)); };
  absl::flat_hash_set<absl::string_view> names;
  for (const FamilyKernel& kernel : kernels) {
    const auto op = std::find_if(ops.begin(), ops.end(), [&](const OpDef& def) { return def.name == kernel.op; });
    if (op == ops.end()) {
      return wrong("it has a CPU kernel of \"", kernel.op, "\", which is no op of its family: write OpDef::name");
    }
    if (op->expand.has()) return wrong("the op ", op->name, " is expanded, and its CPU kernel would never run");
    if (kernel.make == nullptr) return wrong("the CPU kernel of the op ", op->name, " has no function that makes it");
    if (!names.insert(kernel.op).second) return wrong("the op ", op->name, " has two CPU kernels");
  }
  for (const OpDef& op : ops) {
    if (!op.expand.has() && !names.contains(op.name)) {
      return wrong("the op ", op.name, " is not expanded, and no device of this server has a kernel of it");
    }
  }
  return absl::OkStatus();
}

KernelFactory::KernelFactory(const JitOptions& jit, FftTransforms& fft,
                             absl::Span<const absl::Span<const FamilyKernel>> families)
    : jit_(jit), fft_(fft) {
  for (absl::Span<const FamilyKernel> table : families) {
    for (const FamilyKernel& kernel : table) families_.emplace(kernel.op, kernel.make);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelFactory::Make(const BoundInstruction& instruction,
                                                            absl::Span<const int32_t> num_readers) const {
  // A kernel may go through more elements than it writes. A kernel without elements is not refused, either.
  const auto is_empty = [](const ConcreteType& type) { return type.num_elements() == 0; };
  if (absl::c_all_of(instruction.results, is_empty)) return std::make_unique<NothingToDo>();
  if (instruction.micro != nullptr) return MakeFusedKernel(instruction, jit_);
  if (MakeKernel* const make = FactoryOf(*instruction.op); make != nullptr) return make(instruction);
  if (MakeFamilyKernel* const make = FamilyOf(*instruction.op); make != nullptr) {
    return make(instruction, {.fft = &fft_, .num_readers = num_readers});
  }
  return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("the device cpu cannot run ", instruction.op->name));
}

MakeFamilyKernel* KernelFactory::FamilyOf(const OpDef& op) const {
  if (op.op_class != OpClass::kExtension) return nullptr;
  if (MakeFamilyKernel* const built_in = FamilyFactoryOf(op); built_in != nullptr) return built_in;
  const auto it = families_.find(op.name);
  return it == families_.end() ? nullptr : it->second;
}

}  // namespace tensord::cpu
