#ifndef TENSORD_ENGINE_OPS_TRIANGLE_H_
#define TENSORD_ENGINE_OPS_TRIANGLE_H_

#include <utility>

#include "engine/ops/core_ops.h"
#include "engine/ops/derivatives/rules.h"

namespace tensord {

// Ops that keep one triangle of matrices: Tril, Triu.

// Returns the axes of the rows and of the columns: the first two, where the attributes do not name others.
std::pair<int64_t, int64_t> MatrixAxes(const Attributes& attrs);

absl::StatusOr<ResultTypes> InferTriangle(InferContext& context);
absl::Status ReferenceTril(const ReferenceCall& call);
absl::Status ReferenceTriu(const ReferenceCall& call);
PermutedCall PermuteTriangle(const PermuteContext& context);

inline constexpr AttrDef kTriangleAttrs[] = {{.name = "diagonal", .kind = AttrKind::kInt},
                                             // [row axis, column axis]; unset: [0, 1].
                                             {.name = "matrix_axes", .kind = AttrKind::kInts, .engine_only = true}};
inline constexpr RefusalRule kTriangleRefusals[] = {
    {Refusal::kRankMismatch, "the operand's rank is below 2"},
    {Refusal::kAttributeInvalid, "matrix_axes, which only passes set, is not two axes"}};

inline constexpr OpDef kTrilDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kTril),
    .name = "tril",
    .summary = "Keeps the elements of each matrix (the first two axes) on and below a diagonal; zero above.",
    .op_class = OpClass::kPlain,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = kTriangleAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferTriangle,
    .refusals = kTriangleRefusals,
    .reference = &ReferenceTril,
    .permute = &PermuteTriangle,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeTriangle};

inline constexpr OpDef kTriuDef = {
    .family = "core",
    .index = static_cast<uint16_t>(CoreOp::kTriu),
    .name = "triu",
    .summary = "Keeps the elements of each matrix (the first two axes) on and above a diagonal; zero below.",
    .op_class = OpClass::kPlain,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = kTriangleAttrs,
    .traits = kNoTraits,
    .dtypes = kAnyDType,
    .infer = &InferTriangle,
    .refusals = kTriangleRefusals,
    .reference = &ReferenceTriu,
    .permute = &PermuteTriangle,
    .jvp = &JvpLinear,
    .linear_transpose = &TransposeTriangle};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_TRIANGLE_H_
