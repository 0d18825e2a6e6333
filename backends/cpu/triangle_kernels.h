#ifndef TENSORD_BACKENDS_CPU_TRIANGLE_KERNELS_H_
#define TENSORD_BACKENDS_CPU_TRIANGLE_KERNELS_H_

#include "backends/cpu/kernel.h"

namespace tensord::cpu {

// Kernels of tril and triu, on every dtype and for matrices along any two axes.
MakeKernel MakeTriangleKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_TRIANGLE_KERNELS_H_
