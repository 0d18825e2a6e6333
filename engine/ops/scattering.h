#ifndef TENSORD_ENGINE_OPS_SCATTERING_H_
#define TENSORD_ENGINE_OPS_SCATTERING_H_

#include <vector>

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// Scatter: combines windows of updates into a copy of the operand, at the places that index vectors name. Its axes are
// described in engine/ops/index_windows.h. A window that does not fit into the operand is skipped whole. Elements that
// several updates name take them one by one, in index order; 16-bit floats are combined in F32 and rounded after each.

absl::StatusOr<ResultTypes> InferScatter(InferContext& context);
absl::Status ReferenceScatter(const ReferenceCall& call);
PermutedCall PermuteScatter(const PermuteContext& context);

// Returns the batch axes of scatter_indices from the fastest to the slowest, in which updates are taken: the attribute
// index_order if it is set, else ascending.
std::vector<int64_t> ScatterIndexOrder(const Attributes& attrs, int64_t indices_rank);

inline constexpr absl::string_view kScatterCombiners[] = {"add", "set", "multiply", "minimum", "maximum"};
inline constexpr AttrDef kScatterAttrs[] = {
    {.name = "update_window_dims", .kind = AttrKind::kInts},
    {.name = "inserted_window_dims", .kind = AttrKind::kInts},
    {.name = "input_batching_dims", .kind = AttrKind::kInts},
    {.name = "scatter_indices_batching_dims", .kind = AttrKind::kInts},
    {.name = "scatter_dims_to_operand_dims", .kind = AttrKind::kInts},
    {.name = "index_vector_dim", .kind = AttrKind::kInt},
    {.name = "combiner", .kind = AttrKind::kEnum, .enumerators = kScatterCombiners, .may_be_unset = true},
    // Index order is meant over the axes as the client has them; this keeps it when scatter_indices are stored
    // otherwise.
    {.name = "index_order", .kind = AttrKind::kInts, .engine_only = true}};

inline constexpr RefusalRule kScatterRefusals[] = {
    {Refusal::kDtypeMismatch, "operand and updates have two dtypes"},
    {Refusal::kDtypeUnsupported, "scatter_indices are neither I32 nor I64"},
    {Refusal::kAxisOutOfRange, "index_vector_dim is neither an axis of scatter_indices nor their rank"},
    {Refusal::kAxisOutOfRange, "inserted_window_dims names an axis that the operand lacks"},
    {Refusal::kAxisDuplicate, "inserted_window_dims names an axis twice"},
    {Refusal::kAttributeInvalid, "inserted_window_dims is not ascending"},
    {Refusal::kAxisOutOfRange, "input_batching_dims names an axis that the operand lacks"},
    {Refusal::kAxisDuplicate, "input_batching_dims names an axis twice"},
    {Refusal::kAttributeInvalid, "input_batching_dims is not ascending"},
    {Refusal::kAxisDuplicate, "an axis is both inserted and batching"},
    {Refusal::kAxisOutOfRange, "scatter_indices_batching_dims names an axis that scatter_indices lack"},
    {Refusal::kAxisDuplicate, "scatter_indices_batching_dims names an axis twice"},
    {Refusal::kAxisDuplicate, "scatter_indices_batching_dims names index_vector_dim"},
    {Refusal::kAttributeInvalid,
     "input_batching_dims and scatter_indices_batching_dims name different numbers of axes"},
    {Refusal::kShapeMismatch, "sizes of batching axes differ"},
    {Refusal::kAxisOutOfRange, "scatter_dims_to_operand_dims names an axis that the operand lacks"},
    {Refusal::kAxisDuplicate, "scatter_dims_to_operand_dims names an axis twice"},
    {Refusal::kAxisDuplicate, "scatter_dims_to_operand_dims names a batching axis"},
    {Refusal::kShapeMismatch, "scatter_dims_to_operand_dims does not have one entry a component of an index vector"},
    {Refusal::kAttributeInvalid, "update_window_dims does not have one entry a window axis"},
    {Refusal::kAxisOutOfRange, "update_window_dims names an axis that updates lack"},
    {Refusal::kAxisDuplicate, "update_window_dims names an axis twice"},
    {Refusal::kAttributeInvalid, "update_window_dims is not ascending"},
    {Refusal::kAttributeInvalid, "index_order does not name each batch axis of scatter_indices once"},
    {Refusal::kRankMismatch, "updates have another rank than scatter_indices and update_window_dims ask for"},
    {Refusal::kShapeMismatch, "sizes of batch axes of updates and scatter_indices differ"},
    {Refusal::kShapeMismatch, "a window axis of updates is larger than its axis of the operand"}};

inline constexpr OpDef kScatterDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kScatter),
    .name = "scatter",
    .summary =
        "(operand, scatter_indices, updates). Combines a window of updates into the operand for each index vector, "
        "in index order; windows that do not fit are skipped whole.",
    .op_class = OpClass::kPlain,
    .min_operands = 3,
    .max_operands = 3,
    .attrs = kScatterAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferScatter,
    .refusals = kScatterRefusals,
    .reference = &ReferenceScatter,
    .permute = &PermuteScatter,
    .jvp = &JvpScatter,
    .linear_transpose = &TransposeScatter};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_SCATTERING_H_
