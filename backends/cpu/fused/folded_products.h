#ifndef TENSORD_BACKENDS_CPU_FUSED_FOLDED_PRODUCTS_H_
#define TENSORD_BACKENDS_CPU_FUSED_FOLDED_PRODUCTS_H_

#include "backends/cpu/fused/plan.h"

namespace tensord::cpu {

// Makes one step of two where there is one loop for both: the exponential of a tile less one element, as softmaxes have
// it. The same bits; the difference is not stored. For steps that did not become code.
void JoinPairs(FusedPlan* plan);

// The same of a product and the sum that takes it, in rows that are reduced one by one. To be done before steps become
// code, which has no sums.
void JoinFoldedProducts(FusedPlan* plan);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_FOLDED_PRODUCTS_H_
