#ifndef TENSORD_BACKENDS_CPU_GATHER_KERNELS_H_
#define TENSORD_BACKENDS_CPU_GATHER_KERNELS_H_

#include "backends/cpu/kernel.h"

namespace tensord::cpu {

// Kernels of gather and gather_dynamic_slice_sizes, on every dtype. UNSUPPORTED_ON_DEVICE for other ops.
MakeKernel MakeGatherKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_GATHER_KERNELS_H_
