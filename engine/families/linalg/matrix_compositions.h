#ifndef TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_COMPOSITIONS_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_COMPOSITIONS_H_

#include "engine/families/linalg/derivatives.h"
#include "engine/families/linalg/matrix_op.h"

namespace tensord {

// Ops written with factorizations and core ops, so that passes, fusion and differentiation see their parts: Inverse,
// Determinant, SignLogDeterminant, PseudoInverse, LeastSquares, MatrixRank.

absl::StatusOr<ResultTypes> InferInverse(InferContext& context);
absl::Status ReferenceInverse(const ReferenceCall& call);
absl::StatusOr<ExpandedResults> ExpandInverse(const ExpandCall& call);
absl::StatusOr<ResultTypes> InferDeterminant(InferContext& context);
absl::Status ReferenceDeterminant(const ReferenceCall& call);
absl::StatusOr<ExpandedResults> ExpandDeterminant(const ExpandCall& call);
absl::StatusOr<ResultTypes> InferSignLogDeterminant(InferContext& context);
absl::Status ReferenceSignLogDeterminant(const ReferenceCall& call);
absl::StatusOr<ExpandedResults> ExpandSignLogDeterminant(const ExpandCall& call);
absl::StatusOr<ResultTypes> InferPseudoInverse(InferContext& context);
absl::Status ReferencePseudoInverse(const ReferenceCall& call);
absl::StatusOr<ExpandedResults> ExpandPseudoInverse(const ExpandCall& call);
absl::StatusOr<ResultTypes> InferLeastSquares(InferContext& context);
absl::Status ReferenceLeastSquares(const ReferenceCall& call);
absl::StatusOr<ExpandedResults> ExpandLeastSquares(const ExpandCall& call);
absl::StatusOr<ResultTypes> InferMatrixRank(InferContext& context);
absl::Status ReferenceMatrixRank(const ReferenceCall& call);
absl::StatusOr<ExpandedResults> ExpandMatrixRank(const ExpandCall& call);

inline constexpr AttrDef kCutoffAttrs[] = {{.name = "relative_cutoff", .kind = AttrKind::kMaybeReal}};
inline constexpr RefusalRule kCutoffRefusals[] = {
    {Refusal::kRankMismatch, "the operand's rank is below 2"},
    {Refusal::kAttributeInvalid, "relative_cutoff is negative or not finite"}};
inline constexpr RefusalRule kLeastSquaresRefusals[] = {
    {Refusal::kAttributeInvalid, "relative_cutoff is negative or not finite"},
    {Refusal::kDtypeMismatch, "A and B have two dtypes"},
    {Refusal::kRankMismatch, "A's rank is below 2"},
    {Refusal::kRankMismatch, "A and B have two ranks"},
    {Refusal::kShapeMismatch, "batch axes of A and B differ"},
    {Refusal::kShapeMismatch, "A and B have different numbers of rows"}};

inline constexpr OpDef kInverseDef =
    Composition({.op = LinalgOp::kInverse,
                 .name = "tensord.linalg.v1.Inverse",
                 .summary = "(A) -> A^-1. A singular A fails the run and names the batch index.",
                 .infer = &InferInverse,
                 .refusals = kSquareRefusals,
                 .reference = &ReferenceInverse,
                 .jvp = &JvpInverse},
                &ExpandInverse);

inline constexpr OpDef kDeterminantDef = Composition({.op = LinalgOp::kDeterminant,
                                                      .name = "tensord.linalg.v1.Determinant",
                                                      .summary = "(A) -> det A.",
                                                      .infer = &InferDeterminant,
                                                      .refusals = kSquareRefusals,
                                                      .reference = &ReferenceDeterminant,
                                                      .jvp = &JvpDeterminant},
                                                     &ExpandDeterminant);

inline constexpr OpDef kSignLogDeterminantDef =
    Composition({.op = LinalgOp::kSignLogDeterminant,
                 .name = "tensord.linalg.v1.SignLogDeterminant",
                 .summary = "(A) -> (sign, log|det A|), the logarithm real; (0, -inf) where A is singular.",
                 .infer = &InferSignLogDeterminant,
                 .refusals = kSquareRefusals,
                 .reference = &ReferenceSignLogDeterminant,
                 .num_results = 2,
                 .jvp = &JvpSignLogDeterminant},
                &ExpandSignLogDeterminant);

inline constexpr OpDef kPseudoInverseDef =
    Composition({.op = LinalgOp::kPseudoInverse,
                 .name = "tensord.linalg.v1.PseudoInverse",
                 .summary = "(A) -> the pseudo-inverse, without singular values up to relative_cutoff of the largest.",
                 .attrs = kCutoffAttrs,
                 .infer = &InferPseudoInverse,
                 .refusals = kCutoffRefusals,
                 .reference = &ReferencePseudoInverse,
                 .jvp = &JvpPseudoInverse},
                &ExpandPseudoInverse);

inline constexpr OpDef kLeastSquaresDef =
    Composition({.op = LinalgOp::kLeastSquares,
                 .name = "tensord.linalg.v1.LeastSquares",
                 .summary = "(A, B) -> X that makes |A X - B| least, of least norm. The cutoff is PseudoInverse's.",
                 .operands = 2,
                 .attrs = kCutoffAttrs,
                 .infer = &InferLeastSquares,
                 .refusals = kLeastSquaresRefusals,
                 .reference = &ReferenceLeastSquares,
                 .jvp = &JvpLeastSquares},
                &ExpandLeastSquares);

inline constexpr OpDef kMatrixRankDef =
    Composition({.op = LinalgOp::kMatrixRank,
                 .name = "tensord.linalg.v1.MatrixRank",
                 .summary = "(A) -> I64: how many singular values are above relative_cutoff of the largest.",
                 .attrs = kCutoffAttrs,
                 .infer = &InferMatrixRank,
                 .refusals = kCutoffRefusals,
                 .reference = &ReferenceMatrixRank,
                 .jvp = Facet<JvpRule>::None("no derivative flows through integers")},
                &ExpandMatrixRank);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_COMPOSITIONS_H_
