#ifndef TENSORD_TESTS_HOSTCUDA_HOST_EXPORTS_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_EXPORTS_H_

#include "backends/cuda/abi/blas.h"
#include "backends/cuda/abi/blas_lt.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/abi/fft.h"
#include "backends/cuda/abi/nvrtc.h"
#include "backends/cuda/abi/solver.h"
#include "tests/hostcuda/host_control.h"

// Declarations of all that the host CUDA device exports: a definition that is not as the tables say does not compile.
#define HOST_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace tensord::cuda {

#define TENSORD_DECLARE(name, result, arguments) HOST_CUDA_EXPORT result name arguments;
TENSORD_CUDA_DRIVER_FUNCTIONS(TENSORD_DECLARE)
TENSORD_CUDA_NVRTC_FUNCTIONS(TENSORD_DECLARE)
TENSORD_CUDA_BLAS_LT_FUNCTIONS(TENSORD_DECLARE)
TENSORD_CUDA_BLAS_FUNCTIONS(TENSORD_DECLARE)
TENSORD_CUDA_SOLVER_FUNCTIONS(TENSORD_DECLARE)
TENSORD_CUDA_SOLVER_LATER_FUNCTIONS(TENSORD_DECLARE)
TENSORD_CUDA_FFT_FUNCTIONS(TENSORD_DECLARE)
TENSORD_HOST_CUDA_CONTROLS(TENSORD_DECLARE)
#undef TENSORD_DECLARE

}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_EXPORTS_H_
