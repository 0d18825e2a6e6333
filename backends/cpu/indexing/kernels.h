#ifndef TENSORD_BACKENDS_CPU_INDEXING_KERNELS_H_
#define TENSORD_BACKENDS_CPU_INDEXING_KERNELS_H_

#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Kernels of dynamic_slice and dynamic_update_slice, on every dtype. The copy of the window is planned when the kernel
// is made; where it begins is read from start_indices in every run.
MakeKernel MakeDynamicSliceKernel;
// Its result may be its operand 0: then the window alone is written.
MakeKernel MakeDynamicUpdateSliceKernel;

// Kernels of gather and gather_dynamic_slice_sizes, on every dtype. UNSUPPORTED_ON_DEVICE for other ops.
MakeKernel MakeGatherKernel;

// Kernels of scatter, on every dtype and with every combiner. UNSUPPORTED_ON_DEVICE for other ops.
MakeKernel MakeScatterKernel;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_INDEXING_KERNELS_H_
