#ifndef TENSORD_TESTS_PLUGIN_ROLL_OP_H_
#define TENSORD_TESTS_PLUGIN_ROLL_OP_H_

#include "absl/types/span.h"
#include "backends/cpu/kernel/family_kernel.h"
#include "engine/ir/op_def.h"

namespace sample {

// The family sample, of one op: sample.v1.Roll, on vectors of any dtype.
absl::Span<const tensord::OpDef> Ops();
absl::Span<const tensord::cpu::FamilyKernel> CpuKernels();

}  // namespace sample

#endif  // TENSORD_TESTS_PLUGIN_ROLL_OP_H_
