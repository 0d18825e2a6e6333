#ifndef TENSORD_BACKENDS_CPU_LAYOUT_KERNELS_H_
#define TENSORD_BACKENDS_CPU_LAYOUT_KERNELS_H_

#include "backends/cpu/kernel.h"

namespace tensord::cpu {

// Kernels of the ops that move elements to places known beforehand: transpose, reshape, broadcast_in_dim, slice, pad,
// concatenate, reverse, extract_diag, embed_diag and pad_to_match, on every dtype. UNSUPPORTED_ON_DEVICE for other ops.
MakeKernel MakeLayoutKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LAYOUT_KERNELS_H_
