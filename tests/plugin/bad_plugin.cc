// Plugins that a server must not start with, one for each FLAW that CMake compiles this with.
#include "backends/cpu/kernel/family_kernel.h"
#include "engine/families/family_plugin.h"

namespace {

enum Flaw {
  kNoSymbol,
  kNothing,
  kOtherMagic,
  kOtherAbi,
  kOtherBuild,
  kOtherHeaders,
  kNoOps,
  kKnownOp,
  kNoKernel,
  kOtherDevice,
  kNoDevice,
  kNoTable,
  kKernelOfOther,
  kKernelTwice,
  kKernelUnmade,
  kOnlyOnCuda,
  kNoMessage
};

absl::StatusOr<tensord::ResultTypes> InferCopy(tensord::InferContext& context) {
  return tensord::ResultTypes{context.operand(0)};
}

constexpr tensord::OpDef kCopy = {.family = "bad",
                                  .index = 0,
                                  .name = FLAW == kKnownOp ? "tensord.fft.v1.Fft" : "bad.v1.Copy",
                                  .summary = "Gives its operand back.",
                                  .op_class = tensord::OpClass::kExtension,
                                  .min_operands = 1,
                                  .max_operands = 1,
                                  .attrs = {},
                                  .traits = tensord::kNoTraits,
                                  .dtypes = tensord::kAnyDType,
                                  .infer = &InferCopy,
                                  .refusals = tensord::RefusalTable::None("everything can be given back"),
                                  .reference = tensord::Facet<tensord::ReferenceRule>::None("never run"),
                                  .permute = tensord::Facet<tensord::PermuteRule>::None("never run"),
                                  .jvp = tensord::Facet<tensord::JvpRule>::None("never run"),
                                  .linear_transpose = tensord::Facet<tensord::TransposeRule>::None("never run")};

absl::StatusOr<std::unique_ptr<tensord::cpu::Kernel>> MakeNothing(const tensord::BoundInstruction&,
                                                                  const tensord::cpu::FamilyContext&) {
  return absl::UnimplementedError("never run");
}

constexpr tensord::cpu::FamilyKernel kTable[] = {{.op = FLAW == kKernelOfOther ? "bad.v1.Copi" : "bad.v1.Copy",
                                                  .make = FLAW == kKernelUnmade ? nullptr : &MakeNothing},
                                                 {.op = "bad.v1.Copy", .make = &MakeNothing}};
constexpr const char* DeviceKind() {
  switch (FLAW) {
    case kOtherDevice:
      return "cpuu";
    case kNoDevice:
      return nullptr;
    case kOnlyOnCuda:
      return "cuda";
    default:
      return "cpu";
  }
}
constexpr tensord::DeviceKernels kKernels = {
    .device_kind = DeviceKind(), .table = FLAW == kNoTable ? nullptr : kTable, .count = FLAW == kKernelTwice ? 2 : 1};

}  // namespace

#if !defined(HAS_NO_SYMBOL)
const tensord::FamilyPlugin* tensord_family_plugin_v1() {
  static const tensord::FamilyPlugin plugin = {
      .magic = FLAW == kOtherMagic ? 1 : tensord::kFamilyPluginMagic,
      .abi = FLAW == kOtherAbi ? 99 : tensord::kFamilyPluginAbi,
      .build = FLAW == kOtherBuild ? "tensord 0.0.1" : tensord::kFamilyPluginBuild,
      .interface = FLAW == kOtherHeaders ? "0123456789abcdef" : tensord::kFamilyPluginInterface,
      .family = "bad",
      .ops = &kCopy,
      .num_ops = FLAW == kNoOps ? 0 : 1,
      .kernels = &kKernels,
      .num_kernels = FLAW == kNoKernel ? 0 : 1};
  return FLAW == kNothing ? nullptr : &plugin;
}
#endif
