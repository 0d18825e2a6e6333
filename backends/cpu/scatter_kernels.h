#ifndef TENSORD_BACKENDS_CPU_SCATTER_KERNELS_H_
#define TENSORD_BACKENDS_CPU_SCATTER_KERNELS_H_

#include "backends/cpu/kernel.h"

namespace tensord::cpu {

// Kernels of scatter, on every dtype and with every combiner. UNSUPPORTED_ON_DEVICE for other ops.
MakeKernel MakeScatterKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_SCATTER_KERNELS_H_
