#ifndef TENSORD_BACKENDS_CPU_FUSED_FOLDED_PRODUCTS_H_
#define TENSORD_BACKENDS_CPU_FUSED_FOLDED_PRODUCTS_H_

#include "backends/cpu/fused/plan.h"

namespace tensord::cpu {

// Makes one step of a product and of the sum that takes it, in rows that are reduced one by one: the same bits, and the
// products are not stored. To be done before steps become code, which has no sums.
void JoinFoldedProducts(FusedPlan* plan);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_FOLDED_PRODUCTS_H_
