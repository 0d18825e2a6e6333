#ifndef TENSORD_ENGINE_FAMILIES_LINALG_FACTORIZATIONS_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_FACTORIZATIONS_H_

#include "engine/families/linalg/derivatives.h"
#include "engine/families/linalg/matrix_op.h"

namespace tensord {

// Direct factorizations: Cholesky, Lu, Qr and its reflectors; and the determinant of a triangular factor.

absl::StatusOr<ResultTypes> InferCholesky(InferContext& context);
absl::Status ReferenceCholesky(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferLu(InferContext& context);
absl::Status ReferenceLu(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferQr(InferContext& context);
absl::Status ReferenceQr(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferHouseholderQr(InferContext& context);
absl::Status ReferenceHouseholderQr(const ReferenceCall& call);
absl::StatusOr<ResultTypes> InferTriangularDeterminant(InferContext& context);
absl::Status ReferenceTriangularDeterminant(const ReferenceCall& call);
double DiagonalWork(const WorkCall& call);
absl::StatusOr<ResultTypes> InferEquilibrate(InferContext& context);
absl::Status ReferenceEquilibrate(const ReferenceCall& call);
double EntriesWork(const WorkCall& call);

inline constexpr OpDef kCholeskyDef =
    WithKernels({.op = LinalgOp::kCholesky,
                 .name = "tensord.linalg.v1.Cholesky",
                 .summary = "(A) -> L, A = L L^H, the upper triangle of L zero. Reads the lower triangle of A only.",
                 .infer = &InferCholesky,
                 .refusals = kSquareRefusals,
                 .reference = &ReferenceCholesky,
                 .jvp = &JvpCholesky});

inline constexpr OpDef kLuDef = WithKernels(
    {.op = LinalgOp::kLu,
     .name = "tensord.linalg.v1.Lu",
     .summary = "(A) -> (P, L, U, parity): P A = L U, P a permutation, L unit lower. A singular A is no error.",
     .infer = &InferLu,
     .refusals = kMatrixRefusals,
     .reference = &ReferenceLu,
     .num_results = 4,
     .jvp = &JvpLu});

inline constexpr OpDef kQrDef =
    WithKernels({.op = LinalgOp::kQr,
                 .name = "tensord.linalg.v1.Qr",
                 .summary = "(A) -> (Q, R); with full, Q is square. The signs of R's diagonal are LAPACK's.",
                 .attrs = kFullAttrs,
                 .infer = &InferQr,
                 .refusals = kMatrixRefusals,
                 .reference = &ReferenceQr,
                 .num_results = 2,
                 .jvp = &JvpQr});

inline constexpr OpDef kHouseholderQrDef = WithKernels(
    {.op = LinalgOp::kHouseholderQr,
     .name = "tensord.linalg.v1.HouseholderQr",
     .summary =
         "(A) -> (H, tau): R in the upper triangle of H, below it the reflectors that Q is made of, as LAPACK's geqrf.",
     .infer = &InferHouseholderQr,
     .refusals = kMatrixRefusals,
     .reference = &ReferenceHouseholderQr,
     .num_results = 2,
     .jvp = Facet<JvpRule>::None("reflectors have no rule; Qr has one")});

inline constexpr RefusalRule kTriangularDeterminantRefusals[] = {
    {Refusal::kDtypeMismatch, "the exponents are not real numbers of T's precision"},
    {Refusal::kRankMismatch, "the operand's rank is below 2"},
    {Refusal::kRankMismatch, "the exponents' rank is not that of T's batch"},
    {Refusal::kShapeMismatch, "the operand's matrices are not square"},
    {Refusal::kShapeMismatch, "the exponents' sizes are not those of T's batch"}};

constexpr OpDef MakeTriangularDeterminantDef() {
  OpDef def = WithKernels(
      {.op = LinalgOp::kTriangularDeterminant,
       .name = "tensord.linalg.v1.TriangularDeterminant",
       .summary = "(T) -> (det T, sign, log|det T|) of triangular matrices. Reads the diagonal only. (T, e) "
                  "-> that of 2^e det T.",
       .infer = &InferTriangularDeterminant,
       .refusals = kTriangularDeterminantRefusals,
       .reference = &ReferenceTriangularDeterminant,
       .num_results = 3,
       .jvp = &JvpTriangularDeterminant,
       .work = &DiagonalWork});
  def.max_operands = 2;
  return def;
}
inline constexpr OpDef kTriangularDeterminantDef = MakeTriangularDeterminantDef();

inline constexpr OpDef kEquilibrateDef =
    WithKernels({.op = LinalgOp::kEquilibrate,
                 .name = "tensord.linalg.v1.Equilibrate",
                 .summary = "(A) -> (B, e): det A = 2^e det B, rows and columns divided by powers of two where needed.",
                 .infer = &InferEquilibrate,
                 .refusals = kSquareRefusals,
                 .reference = &ReferenceEquilibrate,
                 .num_results = 2,
                 .jvp = Facet<JvpRule>::None("its powers of two jump; Determinant has a rule"),
                 .work = &EntriesWork});

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_FACTORIZATIONS_H_
