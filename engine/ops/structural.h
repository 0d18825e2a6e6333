#ifndef TENSORD_ENGINE_OPS_STRUCTURAL_H_
#define TENSORD_ENGINE_OPS_STRUCTURAL_H_

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// Ops that rearrange whole tensors, or only hand them on: Transpose, Reshape, BroadcastInDim, OptimizationBarrier.

// result.shape[i] = literal.shape[permutation[i]].
Literal TransposeLiteral(const Literal& literal, absl::Span<const int64_t> permutation);

absl::StatusOr<ResultTypes> InferTranspose(InferContext& context);
absl::Status ReferenceTranspose(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferReshape(InferContext& context);
absl::Status ReferenceReshape(const ReferenceCall& call);
PermutedCall PermuteReshape(const PermuteContext& context);
absl::StatusOr<ResultTypes> InferBroadcastInDim(InferContext& context);
absl::Status ReferenceBroadcastInDim(const ReferenceCall& call);
PermutedCall PermuteBroadcastInDim(const PermuteContext& context);
absl::StatusOr<ResultTypes> InferOptimizationBarrier(InferContext& context);
absl::Status ReferenceOptimizationBarrier(const ReferenceCall& call);
PermutedCall PermuteOptimizationBarrier(const PermuteContext& context);

inline constexpr absl::string_view kOrders[] = {"unspecified", "column_major", "row_major"};
inline constexpr AttrDef kTransposeAttrs[] = {{.name = "permutation", .kind = AttrKind::kInts}};
inline constexpr AttrDef kReshapeAttrs[] = {
    {.name = "shape", .kind = AttrKind::kDims},
    {.name = "order", .kind = AttrKind::kEnum, .enumerators = kOrders, .may_be_unset = true}};
inline constexpr AttrDef kBroadcastInDimAttrs[] = {{.name = "shape", .kind = AttrKind::kDims},
                                                   {.name = "broadcast_dimensions", .kind = AttrKind::kInts}};
inline constexpr RefusalRule kTransposeRefusals[] = {
    {Refusal::kAttributeInvalid, "permutation does not have one entry an axis"},
    {Refusal::kAxisOutOfRange, "permutation names an axis that the operand lacks"},
    {Refusal::kAxisDuplicate, "permutation names an axis twice"}};
inline constexpr RefusalRule kReshapeRefusals[] = {
    {Refusal::kShapeMismatch, "shape has a negative size"},
    {Refusal::kShapeOverflow, "the number of elements overflows 64 bits"},
    {Refusal::kShapeMismatch, "the number of elements changes"}};
inline constexpr RefusalRule kBroadcastInDimRefusals[] = {
    {Refusal::kShapeMismatch, "shape has a negative size"},
    {Refusal::kAttributeInvalid, "broadcast_dimensions does not have one entry an operand axis"},
    {Refusal::kAxisOutOfRange, "broadcast_dimensions names an axis that the result lacks"},
    {Refusal::kAxisDuplicate, "broadcast_dimensions names an axis twice"},
    {Refusal::kShapeMismatch, "the size of an operand axis is neither 1 nor that of its result axis"}};

inline constexpr OpDef kTransposeDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kTranspose),
    .name = "transpose",
    .summary = "Permutes the axes: result.shape[i] = operand.shape[permutation[i]].",
    .op_class = OpClass::kPlain,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = kTransposeAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferTranspose,
    .refusals = kTransposeRefusals,
    .reference = &ReferenceTranspose,
    .permute = Facet<PermuteRule>::None("it is what the pass absorbs: a change of order is all that it is"),
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeTranspose};

inline constexpr OpDef kReshapeDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kReshape),
    .name = "reshape",
    .summary = "Keeps the element sequence read in `order` (default column-major) and changes the shape.",
    .op_class = OpClass::kPlain,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = kReshapeAttrs,
    .traits = kShapeSources,
    .dtypes = kAnyDType,
    .infer = &InferReshape,
    .refusals = kReshapeRefusals,
    .reference = &ReferenceReshape,
    .permute = &PermuteReshape,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeReshape};

inline constexpr OpDef kBroadcastInDimDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kBroadcastInDim),
    .name = "broadcast_in_dim",
    .summary = "Operand axis i becomes result axis broadcast_dimensions[i]; an operand axis of size 1 repeats.",
    .op_class = OpClass::kPlain,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = kBroadcastInDimAttrs,
    .traits = kShapeSources,
    .dtypes = kAnyDType,
    .infer = &InferBroadcastInDim,
    .refusals = kBroadcastInDimRefusals,
    .reference = &ReferenceBroadcastInDim,
    .permute = &PermuteBroadcastInDim,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeBroadcastInDim};

inline constexpr OpDef kOptimizationBarrierDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kOptimizationBarrier),
    .name = "optimization_barrier",
    .summary = "(operand, others…). The operand, read once the others are computed; nothing is merged across it.",
    .op_class = OpClass::kPlain,
    .min_operands = 1,
    .max_operands = kVariadic,
    .attrs = {},
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferOptimizationBarrier,
    .refusals = RefusalTable::None("it takes every dtype and shape"),
    .reference = &ReferenceOptimizationBarrier,
    .permute = &PermuteOptimizationBarrier,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeOptimizationBarrier};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_STRUCTURAL_H_
