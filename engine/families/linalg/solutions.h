#ifndef TENSORD_ENGINE_FAMILIES_LINALG_SOLUTIONS_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_SOLUTIONS_H_

#include "engine/families/linalg/derivatives.h"
#include "engine/families/linalg/matrix_op.h"

namespace tensord {

// Systems of equations: Solve, TriangularSolve.

// Enumerators of TriangularSolve.transpose_a, by wire number.
enum class TransposeA : int64_t { kNoTranspose, kTranspose, kAdjoint };

absl::StatusOr<ResultTypes> InferSolve(InferContext& context);
absl::Status ReferenceSolve(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferTriangularSolve(InferContext& context);
absl::Status ReferenceTriangularSolve(const ReferenceCall& call);

inline constexpr absl::string_view kTransposesOfA[] = {"no_transpose", "transpose", "adjoint"};
inline constexpr AttrDef kTriangularSolveAttrs[] = {
    {.name = "left_side", .kind = AttrKind::kFlag},
    {.name = "lower", .kind = AttrKind::kFlag},
    {.name = "unit_diagonal", .kind = AttrKind::kFlag},
    {.name = "transpose_a", .kind = AttrKind::kEnum, .enumerators = kTransposesOfA, .may_be_unset = true}};
inline constexpr RefusalRule kSolveRefusals[] = {{Refusal::kDtypeMismatch, "A and B have two dtypes"},
                                                 {Refusal::kRankMismatch, "A's rank is below 2"},
                                                 {Refusal::kShapeMismatch, "A's matrices are not square"},
                                                 {Refusal::kRankMismatch, "A and B have two ranks"},
                                                 {Refusal::kShapeMismatch, "batch axes of A and B differ"},
                                                 {Refusal::kShapeMismatch, "B's matrices do not fit A's"}};

inline constexpr OpDef kSolveDef =
    WithKernels({.op = LinalgOp::kSolve,
                 .name = "tensord.linalg.v1.Solve",
                 .summary = "(A, B) -> X: A X = B. A singular A fails the run and names the batch index.",
                 .operands = 2,
                 .infer = &InferSolve,
                 .refusals = kSolveRefusals,
                 .reference = &ReferenceSolve,
                 .jvp = &JvpSolve,
                 .linear_transpose = &TransposeSolve});

inline constexpr OpDef kTriangularSolveDef = WithKernels(
    {.op = LinalgOp::kTriangularSolve,
     .name = "tensord.linalg.v1.TriangularSolve",
     .summary = "(A, B) -> X: op(A) X = B, or X op(A) = B where not left_side. Reads one triangle of A only.",
     .operands = 2,
     .attrs = kTriangularSolveAttrs,
     .infer = &InferTriangularSolve,
     .refusals = kSolveRefusals,
     .reference = &ReferenceTriangularSolve,
     .jvp = &JvpTriangularSolve,
     .linear_transpose = &TransposeTriangularSolve});

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_SOLUTIONS_H_
