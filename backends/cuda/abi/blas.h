#ifndef TENSORD_BACKENDS_CUDA_ABI_BLAS_H_
#define TENSORD_BACKENDS_CUDA_ABI_BLAS_H_

#include <cstddef>
#include <cstdint>

#include "backends/cuda/abi/blas_lt.h"
#include "backends/cuda/abi/driver.h"

namespace tensord::cuda {

// The interface of libcublas, declared by ourselves as driver.h is: what libcublasLt does not have. Results and
// enumerations are those of blas_lt.h.
using BlasHandle = struct BlasObject*;

// cublasSideMode_t, cublasDiagType_t, cublasAtomicsMode_t, cublasMath_t, libraryPropertyType.
inline constexpr int kBlasLeft = 0, kBlasRight = 1;
inline constexpr int kBlasNonUnit = 0, kBlasUnit = 1;
inline constexpr int kBlasAtomicsNotAllowed = 0;
inline constexpr int kBlasPedanticMath = 2;
inline constexpr int kCudaMajorVersion = 0, kCudaMinorVersion = 1;

// Triangular systems of one element type. The factor is the host's.
#define TENSORD_CUDA_BLAS_TRSM(F, name)                                                                           \
  F(name, BlasResult,                                                                                             \
    (BlasHandle handle, int side, int uplo, int operation, int diagonal, int64_t m, int64_t n, const void* alpha, \
     const void* a, int64_t lda, void* b, int64_t ldb))

// Each function as F(name, result, (arguments)).
#define TENSORD_CUDA_BLAS_FUNCTIONS(F)                                                               \
  F(cublasGetProperty, BlasResult, (int property, int* value))                                       \
  F(cublasCreate_v2, BlasResult, (BlasHandle * handle))                                              \
  F(cublasDestroy_v2, BlasResult, (BlasHandle handle))                                               \
  F(cublasSetStream_v2, BlasResult, (BlasHandle handle, CuStream stream))                            \
  F(cublasSetWorkspace_v2, BlasResult, (BlasHandle handle, void* workspace, size_t workspace_bytes)) \
  F(cublasSetAtomicsMode, BlasResult, (BlasHandle handle, int mode))                                 \
  F(cublasSetMathMode, BlasResult, (BlasHandle handle, int mode))                                    \
  TENSORD_CUDA_BLAS_TRSM(F, cublasStrsm_v2_64)                                                       \
  TENSORD_CUDA_BLAS_TRSM(F, cublasDtrsm_v2_64)                                                       \
  TENSORD_CUDA_BLAS_TRSM(F, cublasCtrsm_v2_64)                                                       \
  TENSORD_CUDA_BLAS_TRSM(F, cublasZtrsm_v2_64)

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_ABI_BLAS_H_
