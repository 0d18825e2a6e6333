#ifndef TENSORD_ENGINE_FAMILIES_LINALG_SPECTRA_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_SPECTRA_H_

#include "engine/families/linalg/factorizations.h"
#include "engine/families/linalg/linalg_ops.h"

namespace tensord {

// Singular values and eigenvalues: Svd, Eigh, Eig, and each without its vectors. A matrix that holds a NaN or an
// infinity where it is read gives NaN.

absl::StatusOr<ResultTypes> InferSvd(InferContext& context);
absl::Status ReferenceSvd(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferSvdValues(InferContext& context);
absl::Status ReferenceSvdValues(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferEigh(InferContext& context);
absl::Status ReferenceEigh(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferEighValues(InferContext& context);
absl::Status ReferenceEighValues(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferEig(InferContext& context);
absl::Status ReferenceEig(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferEigValues(InferContext& context);
absl::Status ReferenceEigValues(const ReferenceCall& call);

inline constexpr OpDef kSvdDef = {
    .family = "linalg",
    .index = static_cast<uint16_t>(LinalgOp::kSvd),
    .name = "tensord.linalg.v1.Svd",
    .summary = "(A) -> (U, S, Vh): A = U diag(S) Vh, S real and descending; with full, U and Vh are square.",
    .op_class = OpClass::kExtension,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = kFullAttrs,
    .traits = kJoinsSessions,
    .dtypes = kFieldDTypes,
    .infer = &InferSvd,
    .refusals = kMatrixRefusals,
    .reference = &ReferenceSvd,
    .permute = kMatricesComeFirst,
    .num_results = 3};

inline constexpr OpDef kSvdValuesDef = {.family = "linalg",
                                        .index = static_cast<uint16_t>(LinalgOp::kSvdValues),
                                        .name = "tensord.linalg.v1.SvdValues",
                                        .summary = "(A) -> S, the singular values, real and descending.",
                                        .op_class = OpClass::kExtension,
                                        .min_operands = 1,
                                        .max_operands = 1,
                                        .attrs = {},
                                        .traits = kJoinsSessions,
                                        .dtypes = kFieldDTypes,
                                        .infer = &InferSvdValues,
                                        .refusals = kMatrixRefusals,
                                        .reference = &ReferenceSvdValues,
                                        .permute = kMatricesComeFirst};

inline constexpr OpDef kEighDef = {
    .family = "linalg",
    .index = static_cast<uint16_t>(LinalgOp::kEigh),
    .name = "tensord.linalg.v1.Eigh",
    .summary = "(A) -> (values, vectors): real and ascending, in columns. Reads the lower triangle of A only.",
    .op_class = OpClass::kExtension,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {},
    .traits = kJoinsSessions,
    .dtypes = kFieldDTypes,
    .infer = &InferEigh,
    .refusals = kSquareRefusals,
    .reference = &ReferenceEigh,
    .permute = kMatricesComeFirst,
    .num_results = 2};

inline constexpr OpDef kEighValuesDef = {
    .family = "linalg",
    .index = static_cast<uint16_t>(LinalgOp::kEighValues),
    .name = "tensord.linalg.v1.EighValues",
    .summary = "(A) -> values, real and ascending. Reads the lower triangle of A only.",
    .op_class = OpClass::kExtension,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {},
    .traits = kJoinsSessions,
    .dtypes = kFieldDTypes,
    .infer = &InferEighValues,
    .refusals = kSquareRefusals,
    .reference = &ReferenceEighValues,
    .permute = kMatricesComeFirst};

inline constexpr OpDef kEigDef = {
    .family = "linalg",
    .index = static_cast<uint16_t>(LinalgOp::kEig),
    .name = "tensord.linalg.v1.Eig",
    .summary = "(A) -> (values, right vectors), both complex; the vectors in columns, of length 1.",
    .op_class = OpClass::kExtension,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {},
    .traits = kJoinsSessions,
    .dtypes = kFieldDTypes,
    .infer = &InferEig,
    .refusals = kSquareRefusals,
    .reference = &ReferenceEig,
    .permute = kMatricesComeFirst,
    .num_results = 2};

inline constexpr OpDef kEigValuesDef = {.family = "linalg",
                                        .index = static_cast<uint16_t>(LinalgOp::kEigValues),
                                        .name = "tensord.linalg.v1.EigValues",
                                        .summary = "(A) -> values, complex.",
                                        .op_class = OpClass::kExtension,
                                        .min_operands = 1,
                                        .max_operands = 1,
                                        .attrs = {},
                                        .traits = kJoinsSessions,
                                        .dtypes = kFieldDTypes,
                                        .infer = &InferEigValues,
                                        .refusals = kSquareRefusals,
                                        .reference = &ReferenceEigValues,
                                        .permute = kMatricesComeFirst};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_SPECTRA_H_
