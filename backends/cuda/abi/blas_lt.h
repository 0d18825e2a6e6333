#ifndef TENSORD_BACKENDS_CUDA_ABI_BLAS_LT_H_
#define TENSORD_BACKENDS_CUDA_ABI_BLAS_LT_H_

#include <cstddef>
#include <cstdint>

#include "backends/cuda/abi/driver.h"

namespace tensord::cuda {

// The interface of libcublasLt, declared by ourselves as driver.h is.
using BlasResult = int;
using BlasLtHandle = struct BlasLtObject*;
using BlasLtMatmulDesc = struct BlasLtMatmulDescObject*;
using BlasLtMatrixLayout = struct BlasLtMatrixLayoutObject*;
using BlasLtPreference = struct BlasLtPreferenceObject*;

// cublasStatus_t.
inline constexpr BlasResult kBlasSuccess = 0;
inline constexpr BlasResult kBlasNotInitialized = 1;
inline constexpr BlasResult kBlasAllocFailed = 3;
inline constexpr BlasResult kBlasInvalidValue = 7;
inline constexpr BlasResult kBlasArchitectureMismatch = 8;
inline constexpr BlasResult kBlasExecutionFailed = 13;
inline constexpr BlasResult kBlasInternalError = 14;
inline constexpr BlasResult kBlasNotSupported = 15;

// cudaDataType, also of cuSOLVER and cuFFT.
inline constexpr int kCudaReal32 = 0, kCudaReal64 = 1, kCudaReal16 = 2, kCudaComplex32 = 4, kCudaComplex64 = 5;
inline constexpr int kCudaBrain16 = 14, kCudaInteger64 = 24;

// cublasOperation_t, cublasFillMode_t, cublasComputeType_t.
inline constexpr int kBlasNoTranspose = 0, kBlasTranspose = 1, kBlasConjugateTranspose = 2;
inline constexpr int kBlasLower = 0, kBlasUpper = 1;
inline constexpr int kBlasCompute32 = 68, kBlasCompute32Pedantic = 69;
inline constexpr int kBlasCompute64 = 70, kBlasCompute64Pedantic = 71;

// Attributes of matrix layouts, of products and of preferences.
inline constexpr int kBlasLtLayoutType = 0, kBlasLtLayoutOrder = 1, kBlasLtLayoutRows = 2, kBlasLtLayoutColumns = 3;
inline constexpr int kBlasLtLayoutLeading = 4, kBlasLtLayoutBatch = 5, kBlasLtLayoutBatchStride = 6;
inline constexpr int kBlasLtOrderColumns = 0, kBlasLtOrderRows = 1;
inline constexpr int kBlasLtDescComputeType = 0, kBlasLtDescScaleType = 1, kBlasLtDescPointerMode = 2;
inline constexpr int kBlasLtDescTransposeA = 3, kBlasLtDescTransposeB = 4, kBlasLtDescEpilogue = 7;
inline constexpr int kBlasLtDescBiasPointer = 8;
inline constexpr int kBlasLtPreferMaxWorkspaceBytes = 1, kBlasLtPreferReductionSchemes = 3;
inline constexpr int kBlasLtPreferAlignmentA = 5, kBlasLtPreferAlignmentB = 6, kBlasLtPreferAlignmentC = 7;
inline constexpr int kBlasLtPreferAlignmentD = 8;
inline constexpr int kBlasLtReductionComputeType = 2;
inline constexpr int kBlasLtEpilogueDefault = 1, kBlasLtEpilogueBias = 4;

// cublasLtMatmulAlgo_t: opaque, to be copied as it is.
struct BlasLtAlgorithm {
  uint64_t data[8];
};

// cublasLtMatmulHeuristicResult_t.
struct BlasLtHeuristic {
  BlasLtAlgorithm algorithm;
  size_t workspace_bytes;
  BlasResult state;
  float waves;
  int reserved[4];
};

// Each function as F(name, result, (arguments)).
#define TENSORD_CUDA_BLAS_LT_FUNCTIONS(F)                                                                             \
  F(cublasLtCreate, BlasResult, (BlasLtHandle * handle))                                                              \
  F(cublasLtDestroy, BlasResult, (BlasLtHandle handle))                                                               \
  F(cublasLtGetVersion, size_t, ())                                                                                   \
  F(cublasLtGetStatusName, const char*, (BlasResult result))                                                          \
  F(cublasLtMatmulDescCreate, BlasResult, (BlasLtMatmulDesc * desc, int compute_type, int scale_type))                \
  F(cublasLtMatmulDescDestroy, BlasResult, (BlasLtMatmulDesc desc))                                                   \
  F(cublasLtMatmulDescSetAttribute, BlasResult,                                                                       \
    (BlasLtMatmulDesc desc, int attribute, const void* value, size_t bytes))                                          \
  F(cublasLtMatrixLayoutCreate, BlasResult,                                                                           \
    (BlasLtMatrixLayout * layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                        \
  F(cublasLtMatrixLayoutDestroy, BlasResult, (BlasLtMatrixLayout layout))                                             \
  F(cublasLtMatrixLayoutSetAttribute, BlasResult,                                                                     \
    (BlasLtMatrixLayout layout, int attribute, const void* value, size_t bytes))                                      \
  F(cublasLtMatmulPreferenceCreate, BlasResult, (BlasLtPreference * preference))                                      \
  F(cublasLtMatmulPreferenceDestroy, BlasResult, (BlasLtPreference preference))                                       \
  F(cublasLtMatmulPreferenceSetAttribute, BlasResult,                                                                 \
    (BlasLtPreference preference, int attribute, const void* value, size_t bytes))                                    \
  F(cublasLtMatmulAlgoGetHeuristic, BlasResult,                                                                       \
    (BlasLtHandle handle, BlasLtMatmulDesc desc, BlasLtMatrixLayout a, BlasLtMatrixLayout b, BlasLtMatrixLayout c,    \
     BlasLtMatrixLayout d, BlasLtPreference preference, int wanted, BlasLtHeuristic* results, int* found))            \
  F(cublasLtMatmul, BlasResult,                                                                                       \
    (BlasLtHandle handle, BlasLtMatmulDesc desc, const void* alpha, const void* a, BlasLtMatrixLayout a_layout,       \
     const void* b, BlasLtMatrixLayout b_layout, const void* beta, const void* c, BlasLtMatrixLayout c_layout,        \
     void* d, BlasLtMatrixLayout d_layout, const BlasLtAlgorithm* algorithm, void* workspace, size_t workspace_bytes, \
     CuStream stream))

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_ABI_BLAS_LT_H_
