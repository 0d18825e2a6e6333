#ifndef TENSORD_BACKENDS_CPU_REDUCE_KERNELS_H_
#define TENSORD_BACKENDS_CPU_REDUCE_KERNELS_H_

#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// The kernel of reduce, on every dtype. UNSUPPORTED_ON_DEVICE for other ops.
MakeKernel MakeReduceKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_REDUCE_KERNELS_H_
