#ifndef TENSORD_BACKENDS_CPU_REDUCE_KERNELS_H_
#define TENSORD_BACKENDS_CPU_REDUCE_KERNELS_H_

#include <optional>

#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/reduce/loops.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {

// The kernel of reduce, on every dtype. UNSUPPORTED_ON_DEVICE for other ops.
MakeKernel MakeReduceKernel;

// Returns nothing for kUnspecified.
std::optional<ReduceOp> ReduceOpOf(ReduceKind kind);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_REDUCE_KERNELS_H_
