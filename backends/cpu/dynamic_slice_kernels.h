#ifndef TENSORD_BACKENDS_CPU_DYNAMIC_SLICE_KERNELS_H_
#define TENSORD_BACKENDS_CPU_DYNAMIC_SLICE_KERNELS_H_

#include "backends/cpu/kernel.h"

namespace tensord::cpu {

// Kernels of dynamic_slice and dynamic_update_slice, on every dtype. The copy of the window is planned when the kernel
// is made; where it begins is read from start_indices in every run.
MakeKernel MakeDynamicSliceKernel;
// Its result may be its operand 0: then the window alone is written.
MakeKernel MakeDynamicUpdateSliceKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_DYNAMIC_SLICE_KERNELS_H_
