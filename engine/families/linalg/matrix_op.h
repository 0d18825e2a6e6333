#ifndef TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_OP_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_OP_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/families/linalg/linalg_ops.h"
#include "engine/families/linalg/matrix_types.h"
#include "engine/ir/op_def.h"

namespace tensord {

inline constexpr AttrDef kFullAttrs[] = {{.name = "full", .kind = AttrKind::kFlag}};
inline constexpr RefusalRule kMatrixRefusals[] = {{Refusal::kRankMismatch, "the operand's rank is below 2"}};
inline constexpr RefusalRule kSquareRefusals[] = {{Refusal::kRankMismatch, "the operand's rank is below 2"},
                                                  {Refusal::kShapeMismatch, "the operand's matrices are not square"}};
// Kernels of a family read dense matrices along the first two axes.
inline constexpr Facet<PermuteRule> kMatricesComeFirst =
    Facet<PermuteRule>::None("its matrices lie along the first two axes, as kernels read them");

// The facets of an op that differ within the family: all ops are computed matrix by matrix, in fields.
struct MatrixOp {
  LinalgOp op;
  absl::string_view name;
  absl::string_view summary;
  int operands = 1;
  absl::Span<const AttrDef> attrs = {};
  Facet<InferRule> infer;
  RefusalTable refusals;
  Facet<ReferenceRule> reference;
  int num_results = 1;
  Facet<JvpRule> jvp;
  Facet<TransposeRule> linear_transpose = Facet<TransposeRule>::None("it is not linear");
  WorkRule* work = &MatrixWork;
};

// Declares an op that kernels compute.
constexpr OpDef WithKernels(const MatrixOp& matrix_op) {
  return {.family = "linalg",
          .index = static_cast<uint16_t>(matrix_op.op),
          .name = matrix_op.name,
          .summary = matrix_op.summary,
          .op_class = OpClass::kExtension,
          .min_operands = matrix_op.operands,
          .max_operands = matrix_op.operands,
          .attrs = matrix_op.attrs,
          .traits = kJoinsSessions,
          .dtypes = kFieldDTypes,
          .infer = matrix_op.infer,
          .refusals = matrix_op.refusals,
          .reference = matrix_op.reference,
          .permute = kMatricesComeFirst,
          .jvp = matrix_op.jvp,
          .linear_transpose = matrix_op.linear_transpose,
          .num_results = matrix_op.num_results,
          .work = matrix_op.work};
}

// Declares an op that is written with other ops.
constexpr OpDef Composition(const MatrixOp& matrix_op, Facet<ExpandRule> expand) {
  OpDef def = WithKernels(matrix_op);
  def.traits = kNoTraits;
  def.expand = expand;
  return def;
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_MATRIX_OP_H_
