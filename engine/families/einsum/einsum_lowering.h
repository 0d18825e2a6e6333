#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_LOWERING_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_LOWERING_H_

#include "engine/ir/op_def.h"

namespace tensord {

// Expands an einsum to core ops: first diagonals and sums of single operands, then a contraction or a product for each
// step of the path, last the order and the repeats of the output. Refused as PathOf refuses.
absl::StatusOr<ExpandedResults> ExpandEinsum(const ExpandCall& call);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_LOWERING_H_
