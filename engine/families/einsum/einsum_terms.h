#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_TERMS_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_TERMS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/families/einsum/contraction_network.h"
#include "engine/ir/attribute.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

// An axis of size 1 that stands for a larger one of an ellipsis: it repeats, and takes no part in the sum.
inline constexpr int kUnitAxis = -1;

// An einsum of operands of known ranks: ellipses are labels like others, and labels count from 0.
struct EinsumTerms {
  std::vector<std::vector<int>> operands;  // by axis: a label or kUnitAxis
  std::vector<int> output;
  // By label: that of the first axis that has it, a known one before a symbolic one. Of an ellipsis: what axes make
  // together of which some may turn out to be 1.
  std::vector<Dim> sizes;
  // By label: it stands for an axis of an ellipsis, where an axis whose size is not known yet may turn out to be 1.
  std::vector<bool> of_ellipsis;
  // What parentheses or the attribute `path` ask for; empty where neither is there.
  ContractionPath path;
};

// What axes of these sizes make together where all that are not 1 are equal: an empty one makes an empty one. At least
// one size. Refused with DIM_EXPR_INVALID where they are too many for one expression.
absl::StatusOr<DimExpr> SizeOfBroadcast(absl::Span<const DimExpr> sizes);

// From the attributes of an einsum. Whether all axes of a label have its size is not looked at.
absl::StatusOr<EinsumTerms> TermsOf(const Attributes& attrs, absl::Span<const TensorType* const> operands);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_TERMS_H_
