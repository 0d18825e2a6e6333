#ifndef TENSORD_BACKENDS_CUDA_FFT_FFT_KERNEL_H_
#define TENSORD_BACKENDS_CUDA_FFT_FFT_KERNEL_H_

#include "absl/types/span.h"
#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// The kernels of the family fft: transforms along one axis after the other by cuFFT, between copies where an axis does
// not lie as cuFFT has its lines, or is cut, filled up or scaled.
absl::Span<const FamilyKernel> FftKernels();

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_FFT_FFT_KERNEL_H_
