#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_WINDOW_DOT_KERNEL_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_WINDOW_DOT_KERNEL_H_

#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Makes the kernel of the op "affine_dot": a contraction whose operands are read through strides. For elements that do
// not exist, products by tiles pack zeros; for other products the operand is padded into scratch first.
MakeKernel MakeAffineDotKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_WINDOW_DOT_KERNEL_H_
