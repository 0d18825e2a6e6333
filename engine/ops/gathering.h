#ifndef TENSORD_ENGINE_OPS_GATHERING_H_
#define TENSORD_ENGINE_OPS_GATHERING_H_

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// Ops that read windows at the places that index vectors name: Gather, GatherDynamicSliceSizes. Their axes are
// described in engine/ops/index_windows.h. A start is clamped, so that the window lies in the operand.

absl::StatusOr<ResultTypes> InferGather(InferContext& context);
absl::StatusOr<ResultTypes> InferGatherDynamicSliceSizes(InferContext& context);
absl::Status ReferenceGather(const ReferenceCall& call);
PermutedCall PermuteGather(const PermuteContext& context);

inline constexpr AttrDef kGatherAttrs[] = {{.name = "offset_dims", .kind = AttrKind::kInts},
                                           {.name = "collapsed_slice_dims", .kind = AttrKind::kInts},
                                           {.name = "operand_batching_dims", .kind = AttrKind::kInts},
                                           {.name = "start_indices_batching_dims", .kind = AttrKind::kInts},
                                           {.name = "start_index_map", .kind = AttrKind::kInts},
                                           {.name = "index_vector_dim", .kind = AttrKind::kInt},
                                           {.name = "slice_sizes", .kind = AttrKind::kInts}};
inline constexpr AttrDef kGatherDynamicSliceSizesAttrs[] = {
    {.name = "offset_dims", .kind = AttrKind::kInts},
    {.name = "collapsed_slice_dims", .kind = AttrKind::kInts},
    {.name = "operand_batching_dims", .kind = AttrKind::kInts},
    {.name = "start_indices_batching_dims", .kind = AttrKind::kInts},
    {.name = "start_index_map", .kind = AttrKind::kInts},
    {.name = "index_vector_dim", .kind = AttrKind::kInt},
    {.name = "slice_sizes", .kind = AttrKind::kDims}};

inline constexpr RefusalRule kGatherRefusals[] = {
    {Refusal::kDtypeUnsupported, "start_indices are neither I32 nor I64"},
    {Refusal::kAxisOutOfRange, "index_vector_dim is neither an axis of start_indices nor their rank"},
    {Refusal::kAxisOutOfRange, "collapsed_slice_dims names an axis that the operand lacks"},
    {Refusal::kAxisDuplicate, "collapsed_slice_dims names an axis twice"},
    {Refusal::kAttributeInvalid, "collapsed_slice_dims is not ascending"},
    {Refusal::kAxisOutOfRange, "operand_batching_dims names an axis that the operand lacks"},
    {Refusal::kAxisDuplicate, "operand_batching_dims names an axis twice"},
    {Refusal::kAttributeInvalid, "operand_batching_dims is not ascending"},
    {Refusal::kAxisDuplicate, "an axis is both collapsed and batching"},
    {Refusal::kAxisOutOfRange, "start_indices_batching_dims names an axis that start_indices lack"},
    {Refusal::kAxisDuplicate, "start_indices_batching_dims names an axis twice"},
    {Refusal::kAxisDuplicate, "start_indices_batching_dims names index_vector_dim"},
    {Refusal::kAttributeInvalid,
     "operand_batching_dims and start_indices_batching_dims name different numbers of axes"},
    {Refusal::kShapeMismatch, "sizes of batching axes differ"},
    {Refusal::kAxisOutOfRange, "start_index_map names an axis that the operand lacks"},
    {Refusal::kAxisDuplicate, "start_index_map names an axis twice"},
    {Refusal::kAxisDuplicate, "start_index_map names a batching axis"},
    {Refusal::kShapeMismatch, "start_index_map does not have one entry a component of an index vector"},
    {Refusal::kAttributeInvalid, "offset_dims does not have one entry a window axis"},
    {Refusal::kAxisOutOfRange, "offset_dims names an axis that the result lacks"},
    {Refusal::kAxisDuplicate, "offset_dims names an axis twice"},
    {Refusal::kAttributeInvalid, "offset_dims is not ascending"},
    {Refusal::kAttributeInvalid, "slice_sizes does not have one entry an axis"},
    {Refusal::kShapeMismatch, "a slice size is negative"},
    {Refusal::kShapeMismatch, "a slice size is larger than its axis"},
    {Refusal::kShapeMismatch, "the slice size of a collapsed axis is not 1"},
    {Refusal::kShapeMismatch, "the slice size of a batching axis is above 1"}};

inline constexpr OpDef kGatherDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kGather),
    .name = "gather",
    .summary =
        "(operand, start_indices). A window of the operand for each index vector; starts are clamped into bounds.",
    .op_class = OpClass::kPlain,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = kGatherAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferGather,
    .refusals = kGatherRefusals,
    .reference = &ReferenceGather,
    .permute = &PermuteGather,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeGather};

inline constexpr OpDef kGatherDynamicSliceSizesDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kGatherDynamicSliceSizes),
    .name = "gather_dynamic_slice_sizes",
    .summary = "Gather whose slice sizes are expressions, known when the graph runs.",
    .op_class = OpClass::kPlain,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = kGatherDynamicSliceSizesAttrs,
    .traits = kShapeSources,
    .dtypes = kAnyDType,
    .infer = &InferGatherDynamicSliceSizes,
    .refusals = kGatherRefusals,
    .reference = &ReferenceGather,
    .permute = &PermuteGather,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeGather};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_GATHERING_H_
