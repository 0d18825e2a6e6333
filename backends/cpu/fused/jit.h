#ifndef TENSORD_BACKENDS_CPU_FUSED_JIT_H_
#define TENSORD_BACKENDS_CPU_FUSED_JIT_H_

#include "backends/cpu/fused/plan.h"
#include "backends/cpu/jit/options.h"

namespace tensord::cpu {

// Puts elementwise steps of the plan's tiles together to runs, for code that keeps the values between them in
// registers. Runs are maximal, across steps that only give a place. Removes steps that nothing reads any more. To be
// done before registers are allocated.
void FormRuns(JitIsa isa, JitOptions::Use use, FusedPlan* plan);

// Makes the code of all runs, or of rows. False if there is no memory for it: the plan is of no use then.
bool CompileFused(JitIsa isa, ProtectCode protect, FusedPlan* plan);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_JIT_H_
