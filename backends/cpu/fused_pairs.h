#ifndef TENSORD_BACKENDS_CPU_FUSED_PAIRS_H_
#define TENSORD_BACKENDS_CPU_FUSED_PAIRS_H_

#include "backends/cpu/fused_plan.h"

namespace tensord::cpu {

// Makes one step of two where there is one loop for both: the exponential of a tile less one element, as softmaxes have
// it. The same bits; the difference is not stored. For steps that did not become code.
void JoinPairs(FusedPlan* plan);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_PAIRS_H_
