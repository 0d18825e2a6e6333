// cublas: triangular systems by the host's BLAS. Arguments are checked as the documentation has them.

#include <cblas.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "tests/hostcuda/library_objects.h"
#include "tests/hostcuda/solver_call.h"

namespace tensord::cuda {

struct BlasObject {
  CuStream stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  bool has_atomics = false, is_pedantic = false;
};

namespace {

host::Handles<BlasObject>& AllBlas() {
  static auto* const handles = new host::Handles<BlasObject>;
  return *handles;
}

constexpr size_t kWorkspaceBytes = 4096;  // that it fills

// A call of trsm with all but its matrices.
struct Triangle {
  CBLAS_SIDE side;
  CBLAS_UPLO uplo;
  CBLAS_TRANSPOSE operation;
  CBLAS_DIAG diagonal;
  int m, n;
};

#define HOST_TRSM(T, p, C, factor)                                                            \
  void Solve(const Triangle& t, T alpha, const T* a, int lda, T* b, int ldb) {                \
    cblas_##p##trsm(CblasColMajor, t.side, t.uplo, t.operation, t.diagonal, t.m, t.n, factor, \
                    reinterpret_cast<const C*>(a), lda, reinterpret_cast<C*>(b), ldb);        \
  }
HOST_TRSM(float, s, float, alpha)
HOST_TRSM(double, d, double, alpha)
HOST_TRSM(ComplexFloat, c, void, &alpha)
HOST_TRSM(ComplexDouble, z, void, &alpha)

template <typename T>
BlasResult EnqueueTrsm(BlasHandle handle, int side, int uplo, int operation, int diagonal, int64_t m, int64_t n,
                       const void* alpha, const void* a, int64_t lda, void* b, int64_t ldb) {
  const auto blas = AllBlas().Find(handle);
  if (blas == nullptr) return kBlasNotInitialized;
  const auto stream = host::Streams().Find(blas->stream);
  const int64_t order = side == kBlasLeft ? m : n;
  const Matrix triangle = {order, order, lda}, sides = {m, n, ldb};
  const bool is_known = (side == kBlasLeft || side == kBlasRight) && IsUplo(uplo) && operation >= kBlasNoTranspose &&
                        operation <= kBlasConjugateTranspose && (diagonal == kBlasUnit || diagonal == kBlasNonUnit);
  if (stream == nullptr || !is_known || alpha == nullptr || !triangle.IsSound() || !sides.IsSound()) {
    return kBlasInvalidValue;
  }
  const T* const from = RevealMatrix<T>(a, triangle);
  T* const to = RevealMatrix<T>(b, sides);
  char* const work = host::RevealRange(blas->workspace, kWorkspaceBytes, 256);
  if (from == nullptr || to == nullptr) return kBlasInvalidValue;
  // Sums that are ordered anew, or of other precision, are not wanted here, nor memory that it would allocate itself.
  if (work == nullptr || blas->workspace_bytes < kWorkspaceBytes || blas->has_atomics || !blas->is_pedantic) {
    return kBlasNotSupported;
  }
  T factor;
  std::memcpy(&factor, alpha, sizeof(T));
  const Triangle call = {.side = side == kBlasLeft ? CblasLeft : CblasRight,
                         .uplo = uplo == kBlasLower ? CblasLower : CblasUpper,
                         .operation = operation == kBlasNoTranspose ? CblasNoTrans
                                      : operation == kBlasTranspose ? CblasTrans
                                                                    : CblasConjTrans,
                         .diagonal = diagonal == kBlasUnit ? CblasUnit : CblasNonUnit,
                         .m = static_cast<int>(m),
                         .n = static_cast<int>(n)};
  const CuResult pushed = stream->Enqueue("cublasTrsm", [=] {
    std::memset(work, 0xA5, kWorkspaceBytes);
    Solve(call, factor, from, static_cast<int>(lda), to, static_cast<int>(ldb));
  });
  return pushed == kCuSuccess ? kBlasSuccess : kBlasExecutionFailed;
}

}  // namespace

#define HOST_ENTER_CUBLAS()                                                                                          \
  if (const int injected = host::Calls::Get().Count(__func__, kBlasExecutionFailed); injected != 0) return injected; \
  if (!host::Context::Get().is_current()) return kBlasNotInitialized;                                                \
  const auto blas = AllBlas().Find(handle);                                                                          \
  if (blas == nullptr) return kBlasNotInitialized

HOST_CUDA_EXPORT BlasResult cublasGetProperty(int property, int* value) {
  if (const int injected = host::Calls::Get().Count(__func__, kBlasInternalError); injected != 0) return injected;
  *value = property == kCudaMajorVersion ? 13 : 0;
  return kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasCreate_v2(BlasHandle* handle) {
  if (const int injected = host::Calls::Get().Count(__func__, kBlasAllocFailed); injected != 0) return injected;
  if (!host::Context::Get().is_current()) return kBlasNotInitialized;
  if (host::CaptureForbids()) return kBlasAllocFailed;  // of its workspace
  *handle = AllBlas().Add(std::make_shared<BlasObject>());
  (*handle)->has_atomics = true;
  return kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasDestroy_v2(BlasHandle handle) {
  HOST_ENTER_CUBLAS();
  AllBlas().Take(handle);
  return kBlasSuccess;
}
// The workspace is the library's own again.
HOST_CUDA_EXPORT BlasResult cublasSetStream_v2(BlasHandle handle, CuStream stream) {
  HOST_ENTER_CUBLAS();
  blas->stream = stream;
  blas->workspace = nullptr;
  return kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasSetWorkspace_v2(BlasHandle handle, void* workspace, size_t workspace_bytes) {
  HOST_ENTER_CUBLAS();
  blas->workspace = workspace;
  blas->workspace_bytes = workspace_bytes;
  return kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasSetAtomicsMode(BlasHandle handle, int mode) {
  HOST_ENTER_CUBLAS();
  blas->has_atomics = mode != kBlasAtomicsNotAllowed;
  return kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasSetMathMode(BlasHandle handle, int mode) {
  HOST_ENTER_CUBLAS();
  blas->is_pedantic = mode == kBlasPedanticMath;
  return kBlasSuccess;
}

#define HOST_EXPORT_TRSM(function, T)                                                                                 \
  HOST_CUDA_EXPORT BlasResult function(BlasHandle handle, int side, int uplo, int operation, int diagonal, int64_t m, \
                                       int64_t n, const void* alpha, const void* a, int64_t lda, void* b,             \
                                       int64_t ldb) {                                                                 \
    HOST_ENTER_CUBLAS();                                                                                              \
    return EnqueueTrsm<T>(handle, side, uplo, operation, diagonal, m, n, alpha, a, lda, b, ldb);                      \
  }
HOST_EXPORT_TRSM(cublasStrsm_v2_64, float)
HOST_EXPORT_TRSM(cublasDtrsm_v2_64, double)
HOST_EXPORT_TRSM(cublasCtrsm_v2_64, ComplexFloat)
HOST_EXPORT_TRSM(cublasZtrsm_v2_64, ComplexDouble)

size_t host::LiveBlasObjects() { return AllBlas().size(); }

}  // namespace tensord::cuda
