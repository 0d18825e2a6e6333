#ifndef TENSORD_ENGINE_OPS_REDUCTION_H_
#define TENSORD_ENGINE_OPS_REDUCTION_H_

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

absl::StatusOr<ResultTypes> InferReduce(InferContext& context);
absl::Status ReferenceReduce(const ReferenceCall& call);
PermutedCall PermuteReduce(const PermuteContext& context);

inline constexpr absl::string_view kReduceKinds[] = {"unspecified", "sum", "product", "max", "min", "and", "or"};
inline constexpr AttrDef kReduceAttrs[] = {{.name = "kind", .kind = AttrKind::kEnum, .enumerators = kReduceKinds},
                                           {.name = "dimensions", .kind = AttrKind::kInts},
                                           {.name = "requires_elements", .kind = AttrKind::kFlag}};
inline constexpr RefusalRule kReduceRefusals[] = {
    {Refusal::kAxisOutOfRange, "dimensions names an axis that the operand lacks"},
    {Refusal::kAxisDuplicate, "dimensions names an axis twice"},
    {Refusal::kDtypeUnsupported, "the kind is AND or OR, and the dtype is not BOOL"},
    {Refusal::kShapeMismatch, "requires_elements is set, and a reduced axis is empty"}};

inline constexpr OpDef kReduceDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kReduce),
    .name = "reduce",
    .summary =
        "Combines all elements along the axes, which are removed; over no element the identity. AND and OR take BOOL.",
    .op_class = OpClass::kPlain,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = kReduceAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferReduce,
    .refusals = kReduceRefusals,
    .reference = &ReferenceReduce,
    .permute = &PermuteReduce,
    .jvp = &JvpReduce,
    .linear_transpose = &TransposeReduce};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_REDUCTION_H_
