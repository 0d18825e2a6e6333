#ifndef TENSORD_ENGINE_FAMILIES_LINALG_FACTORIZATIONS_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_FACTORIZATIONS_H_

#include "engine/families/linalg/linalg_ops.h"
#include "engine/families/linalg/matrix_types.h"

namespace tensord {

// Direct factorizations: Cholesky, Lu, Qr.

absl::StatusOr<ResultTypes> InferCholesky(InferContext& context);
absl::Status ReferenceCholesky(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferLu(InferContext& context);
absl::Status ReferenceLu(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferQr(InferContext& context);
absl::Status ReferenceQr(const ReferenceCall& call);

inline constexpr AttrDef kFullAttrs[] = {{.name = "full", .kind = AttrKind::kFlag}};
inline constexpr RefusalRule kMatrixRefusals[] = {{Refusal::kRankMismatch, "the operand's rank is below 2"}};
inline constexpr RefusalRule kSquareRefusals[] = {{Refusal::kRankMismatch, "the operand's rank is below 2"},
                                                  {Refusal::kShapeMismatch, "the operand's matrices are not square"}};
// Kernels of a family read dense matrices along the first two axes.
inline constexpr Facet<PermuteRule> kMatricesComeFirst =
    Facet<PermuteRule>::None("its matrices lie along the first two axes, as kernels read them");

inline constexpr OpDef kCholeskyDef = {
    .family = "linalg",
    .index = static_cast<uint16_t>(LinalgOp::kCholesky),
    .name = "tensord.linalg.v1.Cholesky",
    .summary = "(A) -> L, A = L L^H, the upper triangle of L zero. Reads the lower triangle of A only.",
    .op_class = OpClass::kExtension,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {},
    .traits = kJoinsSessions,
    .dtypes = kFieldDTypes,
    .infer = &InferCholesky,
    .refusals = kSquareRefusals,
    .reference = &ReferenceCholesky,
    .permute = kMatricesComeFirst};

inline constexpr OpDef kLuDef = {
    .family = "linalg",
    .index = static_cast<uint16_t>(LinalgOp::kLu),
    .name = "tensord.linalg.v1.Lu",
    .summary = "(A) -> (P, L, U, parity): P A = L U, P a permutation, L unit lower. A singular A is no error.",
    .op_class = OpClass::kExtension,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {},
    .traits = kJoinsSessions,
    .dtypes = kFieldDTypes,
    .infer = &InferLu,
    .refusals = kMatrixRefusals,
    .reference = &ReferenceLu,
    .permute = kMatricesComeFirst,
    .num_results = 4};

inline constexpr OpDef kQrDef = {.family = "linalg",
                                 .index = static_cast<uint16_t>(LinalgOp::kQr),
                                 .name = "tensord.linalg.v1.Qr",
                                 .summary =
                                     "(A) -> (Q, R); with full, Q is square. The signs of R's diagonal are "
                                     "LAPACK's.",
                                 .op_class = OpClass::kExtension,
                                 .min_operands = 1,
                                 .max_operands = 1,
                                 .attrs = kFullAttrs,
                                 .traits = kJoinsSessions,
                                 .dtypes = kFieldDTypes,
                                 .infer = &InferQr,
                                 .refusals = kMatrixRefusals,
                                 .reference = &ReferenceQr,
                                 .permute = kMatricesComeFirst,
                                 .num_results = 2};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_FACTORIZATIONS_H_
