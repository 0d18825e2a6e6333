#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_LOWERING_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_LOWERING_H_

#include "engine/ir/op_def.h"

namespace tensord {

inline constexpr int64_t kMaxEinsumOperands = 16'384;
// Operands times labels.
inline constexpr int64_t kMaxEinsumIncidences = int64_t{1} << 28;

// An einsum as core ops: diagonals and sums that concern one operand first, then a contraction or a product a step of
// the path, in the end what the order and the repeats of the output ask for. Sizes that are not known are planned with
// as 64. Refused with LIMIT_EXCEEDED where the einsum is larger than the two limits, or where no path keeps
// largest_intermediate.
absl::StatusOr<ExpandedResults> ExpandEinsum(const ExpandCall& call);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_LOWERING_H_
