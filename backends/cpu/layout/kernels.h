#ifndef TENSORD_BACKENDS_CPU_LAYOUT_KERNELS_H_
#define TENSORD_BACKENDS_CPU_LAYOUT_KERNELS_H_

#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Kernels of the ops that move elements to places known beforehand: transpose, reshape, broadcast_in_dim, slice, pad,
// concatenate, reverse, extract_diag, embed_diag and pad_to_match, on every dtype. UNSUPPORTED_ON_DEVICE for other ops.
MakeKernel MakeLayoutKernel;

// Kernels of tril and triu, on every dtype and for matrices along any two axes.
MakeKernel MakeTriangleKernel;

// The kernel of shape_of, which never reads its operand: the size is known when the kernel is made.
MakeKernel MakeShapeOfKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LAYOUT_KERNELS_H_
