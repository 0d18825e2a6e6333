#ifndef TENSORD_ENGINE_OPS_CONTRACTION_H_
#define TENSORD_ENGINE_OPS_CONTRACTION_H_

#include <vector>

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"
#include "engine/ops/semiring.h"

namespace tensord {

absl::StatusOr<ResultTypes> InferDotGeneral(InferContext& context);
absl::Status ReferenceDotGeneral(const ReferenceCall& call);
PermutedCall PermuteDotGeneral(const PermuteContext& context);

// Returns the dtype of a product that is wanted as `wanted`; unset: as the operands. Refuses a dtype that is no wider
// one of their kind.
absl::StatusOr<DType> DotResultDType(DType operand, DType wanted);

// Axes of an operand of rank `rank` that are neither contracted nor batch, ascending.
std::vector<int64_t> FreeAxes(int64_t rank, absl::Span<const int64_t> contracting, absl::Span<const int64_t> batch);

inline constexpr AttrDef kDotGeneralAttrs[] = {
    {.name = "lhs_contracting_dimensions", .kind = AttrKind::kInts},
    {.name = "rhs_contracting_dimensions", .kind = AttrKind::kInts},
    {.name = "lhs_batching_dimensions", .kind = AttrKind::kInts},
    {.name = "rhs_batching_dimensions", .kind = AttrKind::kInts},
    {.name = "result_dtype", .kind = AttrKind::kDType, .may_be_unset = true},
    // 1: the side is conjugated as it is read.
    {.name = "lhs_conj", .kind = AttrKind::kInt, .engine_only = true},
    {.name = "rhs_conj", .kind = AttrKind::kInt, .engine_only = true},
    // result.shape[i] = product.shape[result_permutation[i]]; empty: as it is.
    {.name = "result_permutation", .kind = AttrKind::kInts, .engine_only = true},
    // The operations that stand for the product and the sum. Unset in a graph in another algebra: engine/algebra sets
    // it.
    {.name = "algebra", .kind = AttrKind::kEnum, .enumerators = kAlgebraNames, .may_be_unset = true}};
inline constexpr RefusalRule kDotGeneralRefusals[] = {
    {Refusal::kDtypeMismatch, "lhs and rhs have two dtypes"},
    {Refusal::kAxisOutOfRange, "a contracted axis is not there"},
    {Refusal::kAxisOutOfRange, "a batch axis is not there"},
    {Refusal::kAxisDuplicate, "a contracted axis is named twice"},
    {Refusal::kAxisDuplicate, "a batch axis is named twice"},
    {Refusal::kAxisDuplicate, "an axis is both contracted and batch"},
    {Refusal::kAttributeInvalid, "lhs and rhs name different numbers of contracted or of batch axes"},
    {Refusal::kShapeMismatch, "sizes of contracted axes differ"},
    {Refusal::kShapeMismatch, "sizes of batch axes differ"},
    {Refusal::kDtypeUnsupported, "result_dtype is neither the operands' dtype nor a wider one of its kind"},
    {Refusal::kDtypeUnsupported, "the operands are no elements of the algebra"},
    {Refusal::kDtypeUnsupported, "result_dtype is set to another dtype in an algebra that has no wider elements"},
    {Refusal::kAttributeInvalid, "lhs_conj or rhs_conj, which only passes set, is neither 0 nor 1"},
    {Refusal::kAttributeInvalid, "result_permutation, which only passes set, does not name every axis once"}};

// Returns a multiplication and an addition for each product.
double DotGeneralWork(const WorkCall& call);

inline constexpr OpDef kDotGeneralDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kDotGeneral),
    .name = "dot_general",
    .summary = "Sum of products over the contracted axes. Result axes: lhs free, rhs free, batch. No conjugation.",
    .op_class = OpClass::kPlain,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = kDotGeneralAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferDotGeneral,
    .refusals = kDotGeneralRefusals,
    .reference = &ReferenceDotGeneral,
    .permute = &PermuteDotGeneral,
    .jvp = &JvpDotGeneral,
    .linear_transpose = &TransposeDotGeneral,
    .work = &DotGeneralWork};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_CONTRACTION_H_
