#ifndef TENSORD_BACKENDS_CUDA_ABI_SOLVER_H_
#define TENSORD_BACKENDS_CUDA_ABI_SOLVER_H_

#include <cstddef>
#include <cstdint>

#include "backends/cuda/abi/driver.h"

namespace tensord::cuda {

// The interface of libcusolver's dense part, declared by ourselves as driver.h is. Types are those of blas_lt.h.
using SolverResult = int;
using SolverHandle = struct SolverObject*;
using SolverParams = struct SolverParamsObject*;

// cusolverStatus_t.
inline constexpr SolverResult kSolverSuccess = 0;
inline constexpr SolverResult kSolverNotInitialized = 1;
inline constexpr SolverResult kSolverAllocFailed = 2;
inline constexpr SolverResult kSolverInvalidValue = 3;
inline constexpr SolverResult kSolverExecutionFailed = 6;
inline constexpr SolverResult kSolverInternalError = 7;
inline constexpr SolverResult kSolverNotSupported = 9;

// cusolverEigMode_t, cusolverDeterministicMode_t.
inline constexpr int kSolverNoVectors = 0, kSolverVectors = 1;
inline constexpr int kSolverDeterministic = 1;

// Reflectors have no 64-bit function: Q of each type.
#define TENSORD_CUDA_SOLVER_ORGQR(F, name)                                                                       \
  F(name##_bufferSize, SolverResult,                                                                             \
    (SolverHandle handle, int m, int n, int k, const void* a, int lda, const void* tau, int* work_elements))     \
  F(name, SolverResult,                                                                                          \
    (SolverHandle handle, int m, int n, int k, void* a, int lda, const void* tau, void* work, int work_elements, \
     int* info))

// Neither have batches of Cholesky's factors. The matrices' addresses lie on the device; what is not of the triangle is
// workspace.
#define TENSORD_CUDA_SOLVER_POTRF_BATCHED(F, name) \
  F(name, SolverResult, (SolverHandle handle, int uplo, int n, void** matrices, int lda, int* infos, int batch))

// Each function as F(name, result, (arguments)).
#define TENSORD_CUDA_SOLVER_FUNCTIONS(F)                                                                               \
  F(cusolverGetVersion, SolverResult, (int* version))                                                                  \
  F(cusolverDnCreate, SolverResult, (SolverHandle * handle))                                                           \
  F(cusolverDnDestroy, SolverResult, (SolverHandle handle))                                                            \
  F(cusolverDnSetStream, SolverResult, (SolverHandle handle, CuStream stream))                                         \
  F(cusolverDnSetDeterministicMode, SolverResult, (SolverHandle handle, int mode))                                     \
  F(cusolverDnCreateParams, SolverResult, (SolverParams * params))                                                     \
  F(cusolverDnDestroyParams, SolverResult, (SolverParams params))                                                      \
  F(cusolverDnXpotrf_bufferSize, SolverResult,                                                                         \
    (SolverHandle handle, SolverParams params, int uplo, int64_t n, int type, const void* a, int64_t lda,              \
     int compute_type, size_t* device_bytes, size_t* host_bytes))                                                      \
  F(cusolverDnXpotrf, SolverResult,                                                                                    \
    (SolverHandle handle, SolverParams params, int uplo, int64_t n, int type, void* a, int64_t lda, int compute_type,  \
     void* device_work, size_t device_bytes, void* host_work, size_t host_bytes, int* info))                           \
  F(cusolverDnXgetrf_bufferSize, SolverResult,                                                                         \
    (SolverHandle handle, SolverParams params, int64_t m, int64_t n, int type, const void* a, int64_t lda,             \
     int compute_type, size_t* device_bytes, size_t* host_bytes))                                                      \
  F(cusolverDnXgetrf, SolverResult,                                                                                    \
    (SolverHandle handle, SolverParams params, int64_t m, int64_t n, int type, void* a, int64_t lda, int64_t* pivots,  \
     int compute_type, void* device_work, size_t device_bytes, void* host_work, size_t host_bytes, int* info))         \
  F(cusolverDnXgetrs, SolverResult,                                                                                    \
    (SolverHandle handle, SolverParams params, int operation, int64_t n, int64_t columns, int type, const void* a,     \
     int64_t lda, const int64_t* pivots, int b_type, void* b, int64_t ldb, int* info))                                 \
  F(cusolverDnXgeqrf_bufferSize, SolverResult,                                                                         \
    (SolverHandle handle, SolverParams params, int64_t m, int64_t n, int type, const void* a, int64_t lda,             \
     int tau_type, const void* tau, int compute_type, size_t* device_bytes, size_t* host_bytes))                       \
  F(cusolverDnXgeqrf, SolverResult,                                                                                    \
    (SolverHandle handle, SolverParams params, int64_t m, int64_t n, int type, void* a, int64_t lda, int tau_type,     \
     void* tau, int compute_type, void* device_work, size_t device_bytes, void* host_work, size_t host_bytes,          \
     int* info))                                                                                                       \
  F(cusolverDnXsyevd_bufferSize, SolverResult,                                                                         \
    (SolverHandle handle, SolverParams params, int mode, int uplo, int64_t n, int type, const void* a, int64_t lda,    \
     int w_type, const void* w, int compute_type, size_t* device_bytes, size_t* host_bytes))                           \
  F(cusolverDnXsyevd, SolverResult,                                                                                    \
    (SolverHandle handle, SolverParams params, int mode, int uplo, int64_t n, int type, void* a, int64_t lda,          \
     int w_type, void* w, int compute_type, void* device_work, size_t device_bytes, void* host_work,                   \
     size_t host_bytes, int* info))                                                                                    \
  F(cusolverDnXgesvd_bufferSize, SolverResult,                                                                         \
    (SolverHandle handle, SolverParams params, signed char job_u, signed char job_vt, int64_t m, int64_t n, int type,  \
     const void* a, int64_t lda, int s_type, const void* s, int u_type, const void* u, int64_t ldu, int vt_type,       \
     const void* vt, int64_t ldvt, int compute_type, size_t* device_bytes, size_t* host_bytes))                        \
  F(cusolverDnXgesvd, SolverResult,                                                                                    \
    (SolverHandle handle, SolverParams params, signed char job_u, signed char job_vt, int64_t m, int64_t n, int type,  \
     void* a, int64_t lda, int s_type, void* s, int u_type, void* u, int64_t ldu, int vt_type, void* vt, int64_t ldvt, \
     int compute_type, void* device_work, size_t device_bytes, void* host_work, size_t host_bytes, int* info))         \
  TENSORD_CUDA_SOLVER_POTRF_BATCHED(F, cusolverDnSpotrfBatched)                                                        \
  TENSORD_CUDA_SOLVER_POTRF_BATCHED(F, cusolverDnDpotrfBatched)                                                        \
  TENSORD_CUDA_SOLVER_POTRF_BATCHED(F, cusolverDnCpotrfBatched)                                                        \
  TENSORD_CUDA_SOLVER_POTRF_BATCHED(F, cusolverDnZpotrfBatched)                                                        \
  TENSORD_CUDA_SOLVER_ORGQR(F, cusolverDnSorgqr)                                                                       \
  TENSORD_CUDA_SOLVER_ORGQR(F, cusolverDnDorgqr)                                                                       \
  TENSORD_CUDA_SOLVER_ORGQR(F, cusolverDnCungqr)                                                                       \
  TENSORD_CUDA_SOLVER_ORGQR(F, cusolverDnZungqr)

// Functions that came later: null in the table of an older library.
#define TENSORD_CUDA_SOLVER_LATER_FUNCTIONS(F)                                                                       \
  F(cusolverDnXsyevBatched_bufferSize, SolverResult,                                                                 \
    (SolverHandle handle, SolverParams params, int mode, int uplo, int64_t n, int type, const void* a, int64_t lda,  \
     int w_type, const void* w, int compute_type, size_t* device_bytes, size_t* host_bytes, int64_t batch))          \
  F(cusolverDnXsyevBatched, SolverResult,                                                                            \
    (SolverHandle handle, SolverParams params, int mode, int uplo, int64_t n, int type, void* a, int64_t lda,        \
     int w_type, void* w, int compute_type, void* device_work, size_t device_bytes, void* host_work,                 \
     size_t host_bytes, int* info, int64_t batch))                                                                   \
  F(cusolverDnXgeev_bufferSize, SolverResult,                                                                        \
    (SolverHandle handle, SolverParams params, int left_mode, int right_mode, int64_t n, int type, const void* a,    \
     int64_t lda, int w_type, const void* w, int vl_type, const void* vl, int64_t ldvl, int vr_type, const void* vr, \
     int64_t ldvr, int compute_type, size_t* device_bytes, size_t* host_bytes))                                      \
  F(cusolverDnXgeev, SolverResult,                                                                                   \
    (SolverHandle handle, SolverParams params, int left_mode, int right_mode, int64_t n, int type, void* a,          \
     int64_t lda, int w_type, void* w, int vl_type, void* vl, int64_t ldvl, int vr_type, void* vr, int64_t ldvr,     \
     int compute_type, void* device_work, size_t device_bytes, void* host_work, size_t host_bytes, int* info))

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_ABI_SOLVER_H_
