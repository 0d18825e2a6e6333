#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_KERNELS_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_KERNELS_H_

#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Kernels of the ops that work element by element: every unary and binary op, compare, select, clamp, convert and iota.
// UNSUPPORTED_ON_DEVICE for other ops, and for dtypes on which the op is not defined.
MakeKernel MakeElementwiseKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_KERNELS_H_
