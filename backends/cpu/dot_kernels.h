#ifndef TENSORD_BACKENDS_CPU_DOT_KERNELS_H_
#define TENSORD_BACKENDS_CPU_DOT_KERNELS_H_

#include "backends/cpu/kernel.h"

namespace tensord::cpu {

// The kernel of dot_general, on every dtype. UNSUPPORTED_ON_DEVICE for other ops, and for sizes beyond what BLAS
// counts.
MakeKernel MakeDotKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_DOT_KERNELS_H_
