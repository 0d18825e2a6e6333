#ifndef TENSORD_BACKENDS_CUDA_ABI_FFT_H_
#define TENSORD_BACKENDS_CUDA_ABI_FFT_H_

#include <cstddef>

#include "backends/cuda/abi/driver.h"

namespace tensord::cuda {

// The interface of libcufft, declared by ourselves as driver.h is.
using FftResult = int;
using FftPlan = int;

// cufftResult.
inline constexpr FftResult kFftSuccess = 0;
inline constexpr FftResult kFftInvalidPlan = 1;
inline constexpr FftResult kFftAllocFailed = 2;
inline constexpr FftResult kFftInvalidValue = 4;
inline constexpr FftResult kFftExecFailed = 6;
inline constexpr FftResult kFftInvalidSize = 8;
inline constexpr FftResult kFftNotSupported = 16;

// cufftType, and directions.
inline constexpr int kFftR2C = 0x2a, kFftC2R = 0x2c, kFftC2C = 0x29;
inline constexpr int kFftD2Z = 0x6a, kFftZ2D = 0x6c, kFftZ2Z = 0x69;
inline constexpr int kFftForward = -1, kFftInverse = 1;

// Each function as F(name, result, (arguments)).
#define TENSORD_CUDA_FFT_FUNCTIONS(F)                                                                             \
  F(cufftGetVersion, FftResult, (int* version))                                                                   \
  F(cufftCreate, FftResult, (FftPlan * plan))                                                                     \
  F(cufftDestroy, FftResult, (FftPlan plan))                                                                      \
  F(cufftSetAutoAllocation, FftResult, (FftPlan plan, int is_automatic))                                          \
  F(cufftMakePlanMany64, FftResult,                                                                               \
    (FftPlan plan, int rank, long long* lengths, long long* in_embed, long long in_stride, long long in_distance, \
     long long* out_embed, long long out_stride, long long out_distance, int type, long long batch,               \
     size_t* work_bytes))                                                                                         \
  F(cufftSetWorkArea, FftResult, (FftPlan plan, void* work))                                                      \
  F(cufftSetStream, FftResult, (FftPlan plan, CuStream stream))                                                   \
  F(cufftXtExec, FftResult, (FftPlan plan, void* in, void* out, int direction))

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_ABI_FFT_H_
