#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_LOWERING_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_LOWERING_H_

#include "engine/ir/op_def.h"

namespace tensord {

inline constexpr int64_t kMaxEinsumOperands = 16'384;
// Operands times labels.
inline constexpr int64_t kMaxEinsumIncidences = int64_t{1} << 28;

// Expands an einsum to core ops: first diagonals and sums of single operands, then a contraction or a product for each
// step of the path, last the order and the repeats of the output. Unknown sizes count as 64 in the plan. Refused with
// LIMIT_EXCEEDED if the einsum is larger than the two limits, or if no path keeps largest_intermediate.
absl::StatusOr<ExpandedResults> ExpandEinsum(const ExpandCall& call);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_LOWERING_H_
