#ifndef TENSORD_BACKENDS_CPU_FFT_LINES_KERNEL_H_
#define TENSORD_BACKENDS_CPU_FFT_LINES_KERNEL_H_

#include <memory>

#include "backends/cpu/fft/lanes/lanes.h"
#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

class FftTransforms;

// Makes the kernel of the `inner` lines of a complex transform that lie side by side; the addresses of `lines` are the
// kernel's. Takes its tables from there, and keeps them itself. Lines may be transformed in place. It runs on the
// thread that calls it.
std::unique_ptr<Kernel> MakeFftLinesKernel(bool is_double, const FftLines& lines, FftTransforms& transforms);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FFT_LINES_KERNEL_H_
