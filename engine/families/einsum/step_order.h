#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_STEP_ORDER_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_STEP_ORDER_H_

#include "engine/families/einsum/contraction_network.h"

namespace tensord {

// The same contractions in an order in which large intermediates live shortly: a step whose result is larger than its
// operands together waits until the step that reads it is next. So both operands of a step are made right before it
// where both are like that, and what these are made from before both. All other steps keep their order.
ContractionPath WithLateGrowth(const ContractionNetwork& network, const ContractionPath& path);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_STEP_ORDER_H_
