#ifndef TENSORD_BACKENDS_CPU_SHAPE_OF_KERNEL_H_
#define TENSORD_BACKENDS_CPU_SHAPE_OF_KERNEL_H_

#include "backends/cpu/kernel.h"

namespace tensord::cpu {

// The kernel of shape_of, which never reads its operand: the size is known when the kernel is made.
MakeKernel MakeShapeOfKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_SHAPE_OF_KERNEL_H_
