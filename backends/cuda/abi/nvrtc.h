#ifndef TENSORD_BACKENDS_CUDA_ABI_NVRTC_H_
#define TENSORD_BACKENDS_CUDA_ABI_NVRTC_H_

#include <cstddef>

namespace tensord::cuda {

// The interface of NVIDIA's run-time compiler (libnvrtc), declared by ourselves as driver.h is.
using NvrtcResult = int;
using NvrtcProgram = struct NvrtcProgramObject*;

// nvrtcResult.
inline constexpr NvrtcResult kNvrtcSuccess = 0;
inline constexpr NvrtcResult kNvrtcOutOfMemory = 1;
inline constexpr NvrtcResult kNvrtcInvalidInput = 3;
inline constexpr NvrtcResult kNvrtcInvalidProgram = 4;
inline constexpr NvrtcResult kNvrtcInvalidOption = 5;
inline constexpr NvrtcResult kNvrtcCompilation = 6;

// Each function as F(name, result, (arguments)).
#define TENSORD_CUDA_NVRTC_FUNCTIONS(F)                                                                         \
  F(nvrtcVersion, NvrtcResult, (int* major, int* minor))                                                        \
  F(nvrtcGetNumSupportedArchs, NvrtcResult, (int* number))                                                      \
  F(nvrtcGetSupportedArchs, NvrtcResult, (int* architectures))                                                  \
  F(nvrtcGetErrorString, const char*, (NvrtcResult result))                                                     \
  F(nvrtcCreateProgram, NvrtcResult,                                                                            \
    (NvrtcProgram * program, const char* source, const char* name, int num_headers, const char* const* headers, \
     const char* const* include_names))                                                                         \
  F(nvrtcCompileProgram, NvrtcResult, (NvrtcProgram program, int num_options, const char* const* options))      \
  F(nvrtcDestroyProgram, NvrtcResult, (NvrtcProgram * program))                                                 \
  F(nvrtcGetProgramLogSize, NvrtcResult, (NvrtcProgram program, size_t * bytes))                                \
  F(nvrtcGetProgramLog, NvrtcResult, (NvrtcProgram program, char* log))                                         \
  F(nvrtcGetPTXSize, NvrtcResult, (NvrtcProgram program, size_t * bytes))                                       \
  F(nvrtcGetPTX, NvrtcResult, (NvrtcProgram program, char* ptx))                                                \
  F(nvrtcGetCUBINSize, NvrtcResult, (NvrtcProgram program, size_t * bytes))                                     \
  F(nvrtcGetCUBIN, NvrtcResult, (NvrtcProgram program, char* cubin))

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_ABI_NVRTC_H_
