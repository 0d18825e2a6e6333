#ifndef TENSORD_ENGINE_OPS_DYNAMIC_SLICING_H_
#define TENSORD_ENGINE_OPS_DYNAMIC_SLICING_H_

#include <vector>

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// Ops on a window whose start is computed: DynamicSlice, DynamicUpdateSlice. The start is moved so that the window
// fits.

// Returns the axis of each entry of start_indices: the entry's own number, unless the attributes say otherwise.
std::vector<int64_t> StartAxes(const Attributes& attrs, int64_t rank);

absl::StatusOr<ResultTypes> InferDynamicSlice(InferContext& context);
absl::Status ReferenceDynamicSlice(const ReferenceCall& call);
PermutedCall PermuteDynamicSlice(const PermuteContext& context);
absl::StatusOr<ResultTypes> InferDynamicUpdateSlice(InferContext& context);
absl::Status ReferenceDynamicUpdateSlice(const ReferenceCall& call);
PermutedCall PermuteDynamicUpdateSlice(const PermuteContext& context);

inline constexpr AttrDef kDynamicSliceAttrs[] = {{.name = "slice_sizes", .kind = AttrKind::kInts},
                                                 // start_indices[i] is of axis start_axes[i]; unset: of axis i.
                                                 {.name = "start_axes", .kind = AttrKind::kInts, .engine_only = true}};
inline constexpr AttrDef kDynamicUpdateSliceAttrs[] = {
    {.name = "start_axes", .kind = AttrKind::kInts, .engine_only = true}};

inline constexpr RefusalRule kDynamicSliceRefusals[] = {
    {Refusal::kAttributeInvalid, "slice_sizes does not have one entry an axis"},
    {Refusal::kDtypeUnsupported, "start_indices is neither I32 nor I64"},
    {Refusal::kRankMismatch, "start_indices is no vector"},
    {Refusal::kShapeMismatch, "start_indices does not have one entry an axis"},
    {Refusal::kAttributeInvalid, "start_axes, which only passes set, does not name each axis once"},
    {Refusal::kShapeMismatch, "a slice size is negative"},
    {Refusal::kShapeMismatch, "a slice size is above the size of its axis"}};
inline constexpr RefusalRule kDynamicUpdateSliceRefusals[] = {
    {Refusal::kDtypeMismatch, "update has another dtype than the operand"},
    {Refusal::kRankMismatch, "update has another rank than the operand"},
    {Refusal::kDtypeUnsupported, "start_indices is neither I32 nor I64"},
    {Refusal::kRankMismatch, "start_indices is no vector"},
    {Refusal::kShapeMismatch, "start_indices does not have one entry an axis"},
    {Refusal::kAttributeInvalid, "start_axes, which only passes set, does not name each axis once"},
    {Refusal::kShapeMismatch, "update is longer than the operand along an axis"}};

inline constexpr OpDef kDynamicSliceDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kDynamicSlice),
    .name = "dynamic_slice",
    .summary =
        "(operand, start_indices). A window of slice_sizes at a start that is computed, clamped so that it fits.",
    .op_class = OpClass::kPlain,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = kDynamicSliceAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferDynamicSlice,
    .refusals = kDynamicSliceRefusals,
    .reference = &ReferenceDynamicSlice,
    .permute = &PermuteDynamicSlice,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeDynamicSlice};

inline constexpr OpDef kDynamicUpdateSliceDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kDynamicUpdateSlice),
    .name = "dynamic_update_slice",
    .summary = "(operand, update, start_indices). The operand with a window replaced, whose start is clamped.",
    .op_class = OpClass::kPlain,
    .min_operands = 3,
    .max_operands = 3,
    .attrs = kDynamicUpdateSliceAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferDynamicUpdateSlice,
    .refusals = kDynamicUpdateSliceRefusals,
    .reference = &ReferenceDynamicUpdateSlice,
    .permute = &PermuteDynamicUpdateSlice,
    .jvp = &JvpDynamicUpdateSlice,
    .linear_transpose = &TransposeDynamicUpdateSlice};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_DYNAMIC_SLICING_H_
