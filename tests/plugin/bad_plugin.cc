// Plugins that a server must not start with, one for each FLAW that CMake compiles this with.
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
                                  .permute = tensord::Facet<tensord::PermuteRule>::None("never run")};
constexpr tensord::DeviceKernels kKernels = {.device_kind = "cpu", .table = &kCopy, .count = 1};

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
