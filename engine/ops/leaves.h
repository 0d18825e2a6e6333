#ifndef TENSORD_ENGINE_OPS_LEAVES_H_
#define TENSORD_ENGINE_OPS_LEAVES_H_

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// Ops without operands: Constant, Iota.

absl::StatusOr<ResultTypes> InferConstant(InferContext& context);
absl::Status ReferenceConstant(const ReferenceCall& call);
PermutedCall PermuteConstant(const PermuteContext& context);
absl::StatusOr<ResultTypes> InferIota(InferContext& context);
absl::Status ReferenceIota(const ReferenceCall& call);
PermutedCall PermuteIota(const PermuteContext& context);

inline constexpr AttrDef kConstantAttrs[] = {{.name = "value", .kind = AttrKind::kLiteral}};
inline constexpr AttrDef kIotaAttrs[] = {{.name = "type", .kind = AttrKind::kType},
                                         {.name = "dimension", .kind = AttrKind::kInt}};
inline constexpr RefusalRule kIotaRefusals[] = {{Refusal::kAxisOutOfRange, "dimension is no axis of the type"}};

inline constexpr OpDef kConstantDef = {.family = "core",
                                       .index = static_cast<uint16_t>(CoreOp::kConstant),
                                       .name = "constant",
                                       .summary = "A tensor that is part of the graph.",
                                       .op_class = OpClass::kPlain,
                                       .min_operands = 0,
                                       .max_operands = 0,
                                       .attrs = kConstantAttrs,
                                       .traits = kHasNoOperand,
                                       .dtypes = kAnyDType,
                                       .infer = &InferConstant,
                                       .refusals = RefusalTable::None("a literal is checked where it is made"),
                                       .reference = &ReferenceConstant,
                                       .permute = &PermuteConstant,
                                       .jvp = Facet<JvpRule>::None(kNothingToDifferentiate),
                                       .linear_transpose = Facet<TransposeRule>::None(kNothingToDifferentiate)};

inline constexpr OpDef kIotaDef = {.family = "core",
                                   .index = static_cast<uint16_t>(CoreOp::kIota),
                                   .name = "iota",
                                   .summary = "0, 1, 2, … along one axis, the same along every other.",
                                   .op_class = OpClass::kPlain,
                                   .min_operands = 0,
                                   .max_operands = 0,
                                   .attrs = kIotaAttrs,
                                   .traits = kHasNoOperand,
                                   .dtypes = kNumbers,
                                   .infer = &InferIota,
                                   .refusals = kIotaRefusals,
                                   .reference = &ReferenceIota,
                                   .permute = &PermuteIota,
                                   .jvp = Facet<JvpRule>::None(kNothingToDifferentiate),
                                   .linear_transpose = Facet<TransposeRule>::None(kNothingToDifferentiate)};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_LEAVES_H_
