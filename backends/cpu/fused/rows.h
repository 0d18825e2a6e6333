#ifndef TENSORD_BACKENDS_CPU_FUSED_ROWS_H_
#define TENSORD_BACKENDS_CPU_FUSED_ROWS_H_

#include "backends/cpu/fused/plan.h"
#include "backends/cpu/jit/options.h"
#include "backends/cpu/jit/program.h"

namespace tensord::cpu {

// Puts all stages of a plan together into code for rows, where each group is a row of one tile and there is code for
// all of its steps; the stages are empty then. False, and the plan as it was, where not. To be done when folds are
// planned and before registers are allocated.
bool FormRows(JitIsa isa, JitOptions::Use use, FusedPlan* plan);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_ROWS_H_
