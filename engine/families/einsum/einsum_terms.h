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
  // The size of each label's first axis, a known one before a symbolic one. For an ellipsis label: the broadcast size
  // of its axes, of which some may turn out to be 1.
  std::vector<Dim> sizes;
  // True for labels that stand for an axis of an ellipsis, if an axis of unknown size may turn out to be 1.
  std::vector<bool> of_ellipsis;
  // The path of the parentheses or of the attribute `path`; empty if neither is there.
  ContractionPath path;
};

// Returns the broadcast size of these sizes; all that are not 1 must be equal, and an empty one makes an empty one. At
// least one size. Refused with DIM_EXPR_INVALID if they are too many for one expression.
absl::StatusOr<DimExpr> SizeOfBroadcast(absl::Span<const DimExpr> sizes);

// Returns the terms of an einsum's attributes. Does not check that all axes of a label have its size.
absl::StatusOr<EinsumTerms> TermsOf(const Attributes& attrs, absl::Span<const TensorType* const> operands);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_TERMS_H_
