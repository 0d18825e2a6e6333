#ifndef TENSORD_ENGINE_OPS_DYNAMIC_TRUNCATE_H_
#define TENSORD_ENGINE_OPS_DYNAMIC_TRUNCATE_H_

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// DynamicTruncate: the one op whose result has a size that only the run decides. Its executor reads the size, binds the
// node's run-time symbol (engine/tensor/run_time_size.h) to TruncatedSize, and knows all types from there on.

// clamp(size, 0, extent), for the bytes of the op's second operand, an I32 or I64 of rank 0.
int64_t TruncatedSize(const void* size, DType dtype, int64_t extent);

absl::StatusOr<ResultTypes> InferDynamicTruncate(InferContext& context);
absl::Status ReferenceDynamicTruncate(const ReferenceCall& call);
PermutedCall PermuteDynamicTruncate(const PermuteContext& context);

inline constexpr AttrDef kDynamicTruncateAttrs[] = {{.name = "dimension", .kind = AttrKind::kInt}};

inline constexpr RefusalRule kDynamicTruncateRefusals[] = {
    {Refusal::kDtypeUnsupported, "size is neither I32 nor I64"},
    {Refusal::kRankMismatch, "size is no scalar"},
    {Refusal::kAxisOutOfRange, "dimension is no axis of the operand"}};

inline constexpr OpDef kDynamicTruncateDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kDynamicTruncate),
    .name = "dynamic_truncate",
    .summary = "(operand, size of rank 0, I32 or I64). Keeps the first clamp(size, 0, extent) entries of an axis.",
    .op_class = OpClass::kPlain,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = kDynamicTruncateAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferDynamicTruncate,
    .refusals = kDynamicTruncateRefusals,
    .reference = &ReferenceDynamicTruncate,
    .permute = &PermuteDynamicTruncate,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeDynamicTruncate};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_DYNAMIC_TRUNCATE_H_
