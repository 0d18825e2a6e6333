#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_STEP_ORDER_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_STEP_ORDER_H_

#include "engine/families/einsum/contraction_network.h"

namespace tensord {

// Orders the same contractions so that large intermediates live shortly: a step with a result larger than its operands
// together waits until its reader is next. If both operands of a step are such results, both are made right before it,
// each after its own operands. All other steps keep their order.
ContractionPath WithLateGrowth(const ContractionNetwork& network, const ContractionPath& path);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_STEP_ORDER_H_
