#ifndef TENSORD_ENGINE_OPS_DIAGONAL_H_
#define TENSORD_ENGINE_OPS_DIAGONAL_H_

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// Ops between a tensor and a diagonal of it: ExtractDiag, EmbedDiag.

absl::StatusOr<ResultTypes> InferExtractDiag(InferContext& context);
absl::Status ReferenceExtractDiag(const ReferenceCall& call);
PermutedCall PermuteExtractDiag(const PermuteContext& context);
absl::StatusOr<ResultTypes> InferEmbedDiag(InferContext& context);
absl::Status ReferenceEmbedDiag(const ReferenceCall& call);
PermutedCall PermuteEmbedDiag(const PermuteContext& context);

inline constexpr AttrDef kDiagonalAttrs[] = {{.name = "axis_a", .kind = AttrKind::kInt},
                                             {.name = "axis_b", .kind = AttrKind::kInt}};
inline constexpr RefusalRule kExtractDiagRefusals[] = {
    {Refusal::kAxisOutOfRange, "axis_a or axis_b is no axis of the operand"},
    {Refusal::kAxisDuplicate, "axis_a is axis_b"},
    {Refusal::kShapeMismatch, "the two axes differ in size"}};
inline constexpr RefusalRule kEmbedDiagRefusals[] = {{Refusal::kAxisOutOfRange, "axis_a is no axis of the operand"},
                                                     {Refusal::kAxisOutOfRange, "axis_b is no axis of the result"}};

inline constexpr OpDef kExtractDiagDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kExtractDiag),
    .name = "extract_diag",
    .summary = "The diagonal of two axes of one size: axis_b is removed, axis_a stays.",
    .op_class = OpClass::kPlain,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = kDiagonalAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferExtractDiag,
    .refusals = kExtractDiagRefusals,
    .reference = &ReferenceExtractDiag,
    .permute = &PermuteExtractDiag,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeExtractDiag};

inline constexpr OpDef kEmbedDiagDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kEmbedDiag),
    .name = "embed_diag",
    .summary = "Puts operand axis axis_a on a diagonal with a new result axis at position axis_b; zero off it.",
    .op_class = OpClass::kPlain,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = kDiagonalAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferEmbedDiag,
    .refusals = kEmbedDiagRefusals,
    .reference = &ReferenceEmbedDiag,
    .permute = &PermuteEmbedDiag,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeEmbedDiag};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_DIAGONAL_H_
