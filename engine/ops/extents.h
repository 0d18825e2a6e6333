#ifndef TENSORD_ENGINE_OPS_EXTENTS_H_
#define TENSORD_ENGINE_OPS_EXTENTS_H_

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// Ops on the size of one axis: ShapeOf, PadToMatch.

absl::StatusOr<ResultTypes> InferShapeOf(InferContext& context);
absl::Status ReferenceShapeOf(const ReferenceCall& call);
PermutedCall PermuteShapeOf(const PermuteContext& context);
absl::StatusOr<ResultTypes> InferPadToMatch(InferContext& context);
absl::Status ReferencePadToMatch(const ReferenceCall& call);
PermutedCall PermutePadToMatch(const PermuteContext& context);

inline constexpr AttrDef kShapeOfAttrs[] = {{.name = "dimension", .kind = AttrKind::kInt}};
inline constexpr AttrDef kPadToMatchAttrs[] = {
    {.name = "dimension", .kind = AttrKind::kInt},
    // One entry: the reference's axis; unset: `dimension`.
    {.name = "reference_axis", .kind = AttrKind::kInts, .engine_only = true}};

inline constexpr RefusalRule kShapeOfRefusals[] = {{Refusal::kAxisOutOfRange, "dimension is no axis of the operand"}};
inline constexpr RefusalRule kPadToMatchRefusals[] = {
    {Refusal::kAxisOutOfRange, "dimension is no axis of the operand"},
    {Refusal::kAxisOutOfRange, "dimension is no axis of the reference"},
    {Refusal::kAttributeInvalid, "reference_axis, which only passes set, is not one axis of the reference"}};

inline constexpr OpDef kShapeOfDef = {.family = "core",
                                      .index = static_cast<uint16_t>(CoreOp::kShapeOf),
                                      .name = "shape_of",
                                      .summary = "The size of one axis, as an I64 of rank 0.",
                                      .op_class = OpClass::kPlain,
                                      .min_operands = 1,
                                      .max_operands = 1,
                                      .attrs = kShapeOfAttrs,
                                      .traits = kNoTraits,
                                      .dtypes = kAnyDType,
                                      .infer = &InferShapeOf,
                                      .refusals = kShapeOfRefusals,
                                      .reference = &ReferenceShapeOf,
                                      .permute = &PermuteShapeOf,
                                      .jvp = Facet<JvpRule>::None(kNothingFlows),
                                      .linear_transpose = Facet<TransposeRule>::None(kNotLinear)};

inline constexpr OpDef kPadToMatchDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kPadToMatch),
    .name = "pad_to_match",
    .summary = "(operand, reference). Zero-pads the high end of an axis to the reference's size; a longer one stays.",
    .op_class = OpClass::kPlain,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = kPadToMatchAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferPadToMatch,
    .refusals = kPadToMatchRefusals,
    .reference = &ReferencePadToMatch,
    .permute = &PermutePadToMatch,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposePadToMatch};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_EXTENTS_H_
