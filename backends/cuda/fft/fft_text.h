#ifndef TENSORD_BACKENDS_CUDA_FFT_FFT_TEXT_H_
#define TENSORD_BACKENDS_CUDA_FFT_FFT_TEXT_H_

#include <cstdint>

#include "backends/cuda/codegen/kernel_text.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// The lines of a tensor along one axis. cuFFT has them one after the other, dense; the tensor has `inner` of them side
// by side.
struct FftAxis {
  int64_t inner = 1;
  int64_t lines = 1;
};

// Prints the copy of lines from a tensor, an entry with pointers to it and to the lines: each of `from_length` numbers
// becomes `length`, the first ones or with zeros behind. Real numbers may become complex ones. Of half a spectrum of
// real numbers (`real_length` > 0: of so many) the imaginary parts that such a spectrum has not are left out.
struct FftLoad {
  FftAxis axis;
  int64_t from_length = 1;
  int64_t length = 1;
  int64_t real_length = 0;
  DType from = DType::kC64;
  DType to = DType::kC64;
};
KernelText FftLoadText(const FftLoad& load, int64_t most_blocks);

// Prints the copy of lines into a tensor, times a factor: an entry with pointers to the lines and to the tensor, which
// may be the same where `inner` is 1.
struct FftStore {
  FftAxis axis;
  int64_t length = 1;
  double factor = 1;
  DType dtype = DType::kC64;
};
KernelText FftStoreText(const FftStore& store, int64_t most_blocks);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_FFT_FFT_TEXT_H_
