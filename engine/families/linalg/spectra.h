#ifndef TENSORD_ENGINE_FAMILIES_LINALG_SPECTRA_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_SPECTRA_H_

#include "engine/families/linalg/derivatives.h"
#include "engine/families/linalg/matrix_op.h"

namespace tensord {

// Singular values and eigenvalues: Svd, Eigh, Eig, and each without its vectors. A NaN or an infinity in the part of a
// matrix that is read gives NaN.

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

inline constexpr OpDef kSvdDef = WithKernels(
    {.op = LinalgOp::kSvd,
     .name = "tensord.linalg.v1.Svd",
     .summary = "(A) -> (U, S, Vh): A = U diag(S) Vh, S real and descending; with full, U and Vh are square.",
     .attrs = kFullAttrs,
     .infer = &InferSvd,
     .refusals = kMatrixRefusals,
     .reference = &ReferenceSvd,
     .num_results = 3,
     .jvp = &JvpSvd});

inline constexpr OpDef kSvdValuesDef = WithKernels({.op = LinalgOp::kSvdValues,
                                                    .name = "tensord.linalg.v1.SvdValues",
                                                    .summary = "(A) -> S, the singular values, real and descending.",
                                                    .infer = &InferSvdValues,
                                                    .refusals = kMatrixRefusals,
                                                    .reference = &ReferenceSvdValues,
                                                    .jvp = &JvpSvdValues});

inline constexpr OpDef kEighDef = WithKernels(
    {.op = LinalgOp::kEigh,
     .name = "tensord.linalg.v1.Eigh",
     .summary = "(A) -> (values, vectors): real and ascending, in columns. Reads the lower triangle of A only.",
     .infer = &InferEigh,
     .refusals = kSquareRefusals,
     .reference = &ReferenceEigh,
     .num_results = 2,
     .jvp = &JvpEigh});

inline constexpr OpDef kEighValuesDef =
    WithKernels({.op = LinalgOp::kEighValues,
                 .name = "tensord.linalg.v1.EighValues",
                 .summary = "(A) -> values, real and ascending. Reads the lower triangle of A only.",
                 .infer = &InferEighValues,
                 .refusals = kSquareRefusals,
                 .reference = &ReferenceEighValues,
                 .jvp = &JvpEighValues});

inline constexpr OpDef kEigDef =
    WithKernels({.op = LinalgOp::kEig,
                 .name = "tensord.linalg.v1.Eig",
                 .summary = "(A) -> (values, right vectors), both complex; the vectors in columns, of length 1.",
                 .infer = &InferEig,
                 .refusals = kSquareRefusals,
                 .reference = &ReferenceEig,
                 .num_results = 2,
                 .jvp = &JvpEig});

inline constexpr OpDef kEigValuesDef = WithKernels({.op = LinalgOp::kEigValues,
                                                    .name = "tensord.linalg.v1.EigValues",
                                                    .summary = "(A) -> values, complex.",
                                                    .infer = &InferEigValues,
                                                    .refusals = kSquareRefusals,
                                                    .reference = &ReferenceEigValues,
                                                    .jvp = &JvpEigValues});

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_SPECTRA_H_
