#ifndef TENSORD_ENGINE_OPS_SLICING_H_
#define TENSORD_ENGINE_OPS_SLICING_H_

#include "engine/ops/core_ops.h"

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
                                    .reference = &ReferenceSlice,
                                    .permute = &PermuteSlice};

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
    .reference = &ReferencePad,
    .permute = &PermutePad};

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
                                          .reference = &ReferenceConcatenate,
                                          .permute = &PermuteConcatenate};

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
                                      .reference = &ReferenceReverse,
                                      .permute = &PermuteReverse};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_SLICING_H_
