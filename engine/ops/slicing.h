#ifndef TENSORD_ENGINE_OPS_SLICING_H_
#define TENSORD_ENGINE_OPS_SLICING_H_

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// Ops that cut, join and turn around: Slice, Pad, Concatenate, Reverse.

absl::StatusOr<ResultTypes> InferSlice(InferContext& context);
absl::Status ReferenceSlice(const ReferenceCall& call);
PermutedCall PermuteSlice(const PermuteContext& context);
absl::StatusOr<ResultTypes> InferPad(InferContext& context);
absl::Status ReferencePad(const ReferenceCall& call);
PermutedCall PermutePad(const PermuteContext& context);
absl::StatusOr<ResultTypes> InferConcatenate(InferContext& context);
absl::Status ReferenceConcatenate(const ReferenceCall& call);
PermutedCall PermuteConcatenate(const PermuteContext& context);
absl::StatusOr<ResultTypes> InferReverse(InferContext& context);
absl::Status ReferenceReverse(const ReferenceCall& call);
PermutedCall PermuteReverse(const PermuteContext& context);

inline constexpr AttrDef kSliceAttrs[] = {{.name = "start_indices", .kind = AttrKind::kInts},
                                          {.name = "limit_indices", .kind = AttrKind::kInts},
                                          {.name = "strides", .kind = AttrKind::kInts}};
inline constexpr AttrDef kPadAttrs[] = {{.name = "edge_padding_low", .kind = AttrKind::kInts},
                                        {.name = "edge_padding_high", .kind = AttrKind::kInts},
                                        {.name = "interior_padding", .kind = AttrKind::kInts}};
inline constexpr AttrDef kConcatenateAttrs[] = {{.name = "dimension", .kind = AttrKind::kInt}};
inline constexpr AttrDef kReverseAttrs[] = {{.name = "dimensions", .kind = AttrKind::kInts}};
inline constexpr RefusalRule kSliceRefusals[] = {
    {Refusal::kAttributeInvalid, "start_indices or limit_indices does not have one entry an axis"},
    {Refusal::kAttributeInvalid, "strides has entries, and not one an axis"},
    {Refusal::kAttributeInvalid, "a stride is not positive"},
    {Refusal::kShapeMismatch, "a start is negative or past its limit"},
    {Refusal::kShapeMismatch, "a limit is past the end of its axis"}};
inline constexpr RefusalRule kPadRefusals[] = {
    {Refusal::kDtypeMismatch, "padding_value has another dtype than the operand"},
    {Refusal::kRankMismatch, "padding_value does not have rank 0"},
    {Refusal::kAttributeInvalid, "edge_padding_low or edge_padding_high does not have one entry an axis"},
    {Refusal::kAttributeInvalid, "interior_padding has entries, and not one an axis"},
    {Refusal::kAttributeInvalid, "an interior padding is negative"},
    {Refusal::kShapeOverflow, "a padding overflows 64 bits"},
    {Refusal::kShapeMismatch, "negative padding takes more from an axis than it has"}};
inline constexpr RefusalRule kConcatenateRefusals[] = {
    {Refusal::kAxisOutOfRange, "dimension is no axis of the operands"},
    {Refusal::kDtypeMismatch, "operands have two dtypes"},
    {Refusal::kRankMismatch, "operands have two ranks"},
    {Refusal::kShapeMismatch, "sizes of an axis that is not joined differ"},
    {Refusal::kShapeOverflow, "the joined size overflows 64 bits"}};
inline constexpr RefusalRule kReverseRefusals[] = {
    {Refusal::kAxisOutOfRange, "dimensions names an axis that the operand lacks"},
    {Refusal::kAxisDuplicate, "dimensions names an axis twice"}};

inline constexpr OpDef kSliceDef = {.family = "core",
                                    .index = static_cast<uint16_t>(CoreOp::kSlice),
                                    .name = "slice",
                                    .summary = "Elements start, start+stride, … below limit along every axis.",
                                    .op_class = OpClass::kPlain,
                                    .min_operands = 1,
                                    .max_operands = 1,
                                    .attrs = kSliceAttrs,
                                    .traits = kNoTraits,
                                    .dtypes = kAnyDType,
                                    .infer = &InferSlice,
                                    .refusals = kSliceRefusals,
                                    .reference = &ReferenceSlice,
                                    .permute = &PermuteSlice,
                                    .jvp = &JvpLinear,
                                    .linear_transpose = &TransposeSlice};

inline constexpr OpDef kPadDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kPad),
    .name = "pad",
    .summary =
        "(operand, padding_value of rank 0). Negative edge padding crops; interior padding goes between elements.",
    .op_class = OpClass::kPlain,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = kPadAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferPad,
    .refusals = kPadRefusals,
    .reference = &ReferencePad,
    .permute = &PermutePad,
    .jvp = &JvpPad,
    .linear_transpose = &TransposePad};

inline constexpr OpDef kConcatenateDef = {.family = "core",
                                          .index = static_cast<uint16_t>(CoreOp::kConcatenate),
                                          .name = "concatenate",
                                          .summary = "Joins tensors along one axis; all other sizes are equal.",
                                          .op_class = OpClass::kPlain,
                                          .min_operands = 1,
                                          .max_operands = kVariadic,
                                          .attrs = kConcatenateAttrs,
                                          .traits = kNoTraits,
                                          .dtypes = kAnyDType,
                                          .infer = &InferConcatenate,
                                          .refusals = kConcatenateRefusals,
                                          .reference = &ReferenceConcatenate,
                                          .permute = &PermuteConcatenate,
                                          .jvp = &JvpConcatenate,
                                          .linear_transpose = &TransposeConcatenate};

inline constexpr OpDef kReverseDef = {.family = "core",
                                      .index = static_cast<uint16_t>(CoreOp::kReverse),
                                      .name = "reverse",
                                      .summary = "Turns the order along the axes around.",
                                      .op_class = OpClass::kPlain,
                                      .min_operands = 1,
                                      .max_operands = 1,
                                      .attrs = kReverseAttrs,
                                      .traits = kNoTraits,
                                      .dtypes = kAnyDType,
                                      .infer = &InferReverse,
                                      .refusals = kReverseRefusals,
                                      .reference = &ReferenceReverse,
                                      .permute = &PermuteReverse,
                                      .jvp = &JvpLinear,
                                      .linear_transpose = &TransposeReverse};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_SLICING_H_
