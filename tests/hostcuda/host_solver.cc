// cuSOLVER's dense 64-bit factorizations and solutions over LAPACK.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/hostcuda/library_objects.h"
#include "tests/hostcuda/solver_call.h"

namespace tensord::cuda {

HOST_CUDA_EXPORT SolverResult cusolverGetVersion(int* version) {
  if (const int injected = host::Calls::Get().Count(__func__, kSolverInternalError); injected != 0) return injected;
  *version = 12000;
  return kSolverSuccess;
}

HOST_CUDA_EXPORT SolverResult cusolverDnCreate(SolverHandle* handle) {
  HOST_ENTER_SOLVER();
  *handle = Solvers().Add(std::make_shared<SolverObject>());
  return kSolverSuccess;
}
HOST_CUDA_EXPORT SolverResult cusolverDnDestroy(SolverHandle handle) {
  HOST_ENTER_SOLVER();
  return Solvers().Take(handle) == nullptr ? kSolverNotInitialized : kSolverSuccess;
}
HOST_CUDA_EXPORT SolverResult cusolverDnSetStream(SolverHandle handle, CuStream stream) {
  HOST_ENTER_SOLVER();
  const auto solver = Solvers().Find(handle);
  if (solver == nullptr) return kSolverNotInitialized;
  solver->stream = stream;
  return kSolverSuccess;
}
HOST_CUDA_EXPORT SolverResult cusolverDnSetDeterministicMode(SolverHandle handle, int mode) {
  HOST_ENTER_SOLVER();
  if (Solvers().Find(handle) == nullptr) return kSolverNotInitialized;
  return mode == kSolverDeterministic ? kSolverSuccess : kSolverNotSupported;
}
HOST_CUDA_EXPORT SolverResult cusolverDnCreateParams(SolverParams* params) {
  HOST_ENTER_SOLVER();
  *params = AllParams().Add(std::make_shared<SolverParamsObject>());
  return kSolverSuccess;
}
HOST_CUDA_EXPORT SolverResult cusolverDnDestroyParams(SolverParams params) {
  HOST_ENTER_SOLVER();
  return AllParams().Take(params) == nullptr ? kSolverInvalidValue : kSolverSuccess;
}

HOST_CUDA_EXPORT SolverResult cusolverDnXpotrf_bufferSize(SolverHandle handle, SolverParams params, int, int64_t n,
                                                          int type, const void*, int64_t lda, int compute_type,
                                                          size_t* device_bytes, size_t* host_bytes) {
  HOST_ENTER_SOLVER();
  return TellWork({handle, params, type, compute_type}, {n, n, lda}, device_bytes, host_bytes);
}

HOST_CUDA_EXPORT SolverResult cusolverDnXpotrf(SolverHandle handle, SolverParams params, int uplo, int64_t n, int type,
                                               void* a, int64_t lda, int compute_type, void* device_work,
                                               size_t device_bytes, void* host_work, size_t host_bytes, int* info) {
  HOST_ENTER_SOLVER();
  if (const SolverResult result = Call{handle, params, type, compute_type}.Check(); result != 0) return result;
  const Matrix matrix = {n, n, lda};
  const Workspace work = WorkspaceOf(type, n, n);
  char* filled = nullptr;
  int* const to_info = RevealVector<int>(info, 1);
  if (!matrix.IsSound() || !IsUplo(uplo) || to_info == nullptr ||
      !TakeWork(work, device_work, device_bytes, host_work, host_bytes, &filled)) {
    return kSolverInvalidValue;
  }
  SolverResult result = kSolverInvalidValue;
  VisitType(type, [&]<typename T, typename Lapack>() {
    T* const at = RevealMatrix<T>(a, matrix);
    if (at == nullptr) return;
    result = EnqueueWork(handle, "cusolverDnXpotrf", filled, work.device_bytes, to_info,
                         [=] { return Lapack::Potrf(UploOf(uplo), static_cast<int>(n), at, static_cast<int>(lda)); });
  });
  return result;
}

HOST_CUDA_EXPORT SolverResult cusolverDnXgetrf_bufferSize(SolverHandle handle, SolverParams params, int64_t m,
                                                          int64_t n, int type, const void*, int64_t lda,
                                                          int compute_type, size_t* device_bytes, size_t* host_bytes) {
  HOST_ENTER_SOLVER();
  return TellWork({handle, params, type, compute_type}, {m, n, lda}, device_bytes, host_bytes);
}

HOST_CUDA_EXPORT SolverResult cusolverDnXgetrf(SolverHandle handle, SolverParams params, int64_t m, int64_t n, int type,
                                               void* a, int64_t lda, int64_t* pivots, int compute_type,
                                               void* device_work, size_t device_bytes, void* host_work,
                                               size_t host_bytes, int* info) {
  HOST_ENTER_SOLVER();
  if (const SolverResult result = Call{handle, params, type, compute_type}.Check(); result != 0) return result;
  const Matrix matrix = {m, n, lda};
  const Workspace work = WorkspaceOf(type, m, n);
  char* filled = nullptr;
  int* const to_info = RevealVector<int>(info, 1);
  const auto count = static_cast<size_t>(std::min(m, n));
  int64_t* const to_pivots = RevealVector<int64_t>(pivots, std::min(m, n));
  if (!matrix.IsSound() || to_info == nullptr || to_pivots == nullptr ||
      !TakeWork(work, device_work, device_bytes, host_work, host_bytes, &filled)) {
    return kSolverInvalidValue;
  }
  SolverResult result = kSolverInvalidValue;
  VisitType(type, [&]<typename T, typename Lapack>() {
    T* const at = RevealMatrix<T>(a, matrix);
    if (at == nullptr) return;
    result = EnqueueWork(handle, "cusolverDnXgetrf", filled, work.device_bytes, to_info, [=] {
      std::vector<int> narrow(count);
      const int status =
          Lapack::Getrf(static_cast<int>(m), static_cast<int>(n), at, static_cast<int>(lda), narrow.data());
      std::copy(narrow.begin(), narrow.end(), to_pivots);
      return status;
    });
  });
  return result;
}

HOST_CUDA_EXPORT SolverResult cusolverDnXgetrs(SolverHandle handle, SolverParams params, int operation, int64_t n,
                                               int64_t columns, int type, const void* a, int64_t lda,
                                               const int64_t* pivots, int b_type, void* b, int64_t ldb, int* info) {
  HOST_ENTER_SOLVER();
  if (const SolverResult result = Call{handle, params, type, b_type}.Check(); result != 0) return result;
  const Matrix matrix = {n, n, lda}, right = {n, columns, ldb};
  int* const to_info = RevealVector<int>(info, 1);
  const int64_t* const from_pivots = RevealVector<int64_t>(pivots, n);
  if (!matrix.IsSound() || !right.IsSound() || to_info == nullptr || from_pivots == nullptr || operation < 0 ||
      operation > kBlasConjugateTranspose) {
    return kSolverInvalidValue;
  }
  SolverResult result = kSolverInvalidValue;
  VisitType(type, [&]<typename T, typename Lapack>() {
    const T* const at = RevealMatrix<T>(a, matrix);
    T* const to = RevealMatrix<T>(b, right);
    if (at == nullptr || to == nullptr) return;
    result = EnqueueWork(handle, "cusolverDnXgetrs", nullptr, 0, to_info, [=] {
      const std::vector<int> narrow(from_pivots, from_pivots + n);
      return Lapack::Getrs("NTC"[operation], static_cast<int>(n), static_cast<int>(columns), at, static_cast<int>(lda),
                           narrow.data(), to, static_cast<int>(ldb));
    });
  });
  return result;
}

HOST_CUDA_EXPORT SolverResult cusolverDnXgeqrf_bufferSize(SolverHandle handle, SolverParams params, int64_t m,
                                                          int64_t n, int type, const void*, int64_t lda, int tau_type,
                                                          const void*, int compute_type, size_t* device_bytes,
                                                          size_t* host_bytes) {
  HOST_ENTER_SOLVER();
  if (tau_type != type) return kSolverInvalidValue;
  return TellWork({handle, params, type, compute_type}, {m, n, lda}, device_bytes, host_bytes);
}

HOST_CUDA_EXPORT SolverResult cusolverDnXgeqrf(SolverHandle handle, SolverParams params, int64_t m, int64_t n, int type,
                                               void* a, int64_t lda, int tau_type, void* tau, int compute_type,
                                               void* device_work, size_t device_bytes, void* host_work,
                                               size_t host_bytes, int* info) {
  HOST_ENTER_SOLVER();
  if (const SolverResult result = Call{handle, params, type, compute_type}.Check(); result != 0) return result;
  const Matrix matrix = {m, n, lda};
  const Workspace work = WorkspaceOf(type, m, n);
  char* filled = nullptr;
  int* const to_info = RevealVector<int>(info, 1);
  if (!matrix.IsSound() || tau_type != type || to_info == nullptr ||
      !TakeWork(work, device_work, device_bytes, host_work, host_bytes, &filled)) {
    return kSolverInvalidValue;
  }
  SolverResult result = kSolverInvalidValue;
  VisitType(type, [&]<typename T, typename Lapack>() {
    T* const at = RevealMatrix<T>(a, matrix);
    T* const to_tau = RevealVector<T>(tau, std::min(m, n));
    if (at == nullptr || to_tau == nullptr) return;
    result = EnqueueWork(handle, "cusolverDnXgeqrf", filled, work.device_bytes, to_info, [=] {
      return Lapack::Geqrf(static_cast<int>(m), static_cast<int>(n), at, static_cast<int>(lda), to_tau);
    });
  });
  return result;
}

// Q of m rows and n columns from k reflectors. The workspace is counted in elements.
#define HOST_ORGQR(function, T, Lapack)                                                                               \
  HOST_CUDA_EXPORT SolverResult function##_bufferSize(SolverHandle handle, int m, int n, int k, const void*, int lda, \
                                                      const void*, int* work_elements) {                              \
    HOST_ENTER_SOLVER();                                                                                              \
    if (Solvers().Find(handle) == nullptr) return kSolverNotInitialized;                                              \
    if (!Matrix{m, n, lda}.IsSound() || m < n || n < k || k < 0) return kSolverInvalidValue;                          \
    *work_elements = 8 * n + 1;                                                                                       \
    return kSolverSuccess;                                                                                            \
  }                                                                                                                   \
  HOST_CUDA_EXPORT SolverResult function(SolverHandle handle, int m, int n, int k, void* a, int lda, const void* tau, \
                                         void* work, int work_elements, int* info) {                                  \
    HOST_ENTER_SOLVER();                                                                                              \
    if (Solvers().Find(handle) == nullptr) return kSolverNotInitialized;                                              \
    const Matrix matrix = {m, n, lda};                                                                                \
    if (!matrix.IsSound() || m < n || n < k || k < 0 || work_elements < 8 * n + 1) return kSolverInvalidValue;        \
    T* const at = RevealMatrix<T>(a, matrix);                                                                         \
    const T* const from_tau = RevealVector<T>(tau, k);                                                                \
    int* const to_info = RevealVector<int>(info, 1);                                                                  \
    const size_t bytes = static_cast<size_t>(8 * n + 1) * sizeof(T);                                                  \
    char* const filled = host::RevealRange(work, bytes, host::kWorkspaceAlignment);                                   \
    if (at == nullptr || from_tau == nullptr || to_info == nullptr || filled == nullptr) return kSolverInvalidValue;  \
    return EnqueueWork(handle, __func__, filled, bytes, to_info,                                                      \
                       [=] { return Lapack::Orgqr(m, n, k, at, lda, from_tau); });                                    \
  }
HOST_ORGQR(cusolverDnSorgqr, float, sLapack)
HOST_ORGQR(cusolverDnDorgqr, double, dLapack)
HOST_ORGQR(cusolverDnCungqr, ComplexFloat, cLapack)
HOST_ORGQR(cusolverDnZungqr, ComplexDouble, zLapack)

// Factors of a batch, whose addresses the device reads when it comes to them. What is not of the triangle is lost.
template <typename T, typename Lapack>
SolverResult FactorBatch(const char* function, SolverHandle handle, int uplo, int n, void** matrices, int lda,
                         int* infos, int batch) {
  const auto solver = Solvers().Find(handle);
  if (solver == nullptr) return kSolverNotInitialized;
  const Matrix matrix = {n, n, lda};
  const auto* const addresses = RevealVector<CuAddress>(matrices, batch);
  int* const to_infos = RevealVector<int>(infos, batch);
  if (!matrix.IsSound() || !IsUplo(uplo) || batch < 1 || addresses == nullptr || to_infos == nullptr) {
    return kSolverInvalidValue;
  }
  const auto stream = host::Streams().Find(solver->stream);
  if (stream == nullptr) return kSolverInvalidValue;
  const CuResult pushed = stream->Enqueue(function, [=] {
    for (int b = 0; b < batch; ++b) {
      T* const at = RevealMatrix<T>(reinterpret_cast<const void*>(addresses[b]), matrix);
      if (at == nullptr) return host::Context::Get().Fail(kCuIllegalAddress);
      to_infos[b] = Lapack::Potrf(UploOf(uplo), n, at, lda);
      for (int64_t column = 0; column < n; ++column) {
        const int64_t begin = uplo == kBlasLower ? 0 : column + 1, end = uplo == kBlasLower ? column : n;
        if (begin < end)
          std::memset(static_cast<void*>(at + column * lda + begin), 0xA5,
                      static_cast<size_t>(end - begin) * sizeof(T));
      }
    }
  });
  return pushed == kCuSuccess ? kSolverSuccess : kSolverExecutionFailed;
}
#define HOST_POTRF_BATCHED(function, T, Lapack)                                                                      \
  HOST_CUDA_EXPORT SolverResult function(SolverHandle handle, int uplo, int n, void** matrices, int lda, int* infos, \
                                         int batch) {                                                                \
    HOST_ENTER_SOLVER();                                                                                             \
    return FactorBatch<T, Lapack>(__func__, handle, uplo, n, matrices, lda, infos, batch);                           \
  }
HOST_POTRF_BATCHED(cusolverDnSpotrfBatched, float, sLapack)
HOST_POTRF_BATCHED(cusolverDnDpotrfBatched, double, dLapack)
HOST_POTRF_BATCHED(cusolverDnCpotrfBatched, ComplexFloat, cLapack)
HOST_POTRF_BATCHED(cusolverDnZpotrfBatched, ComplexDouble, zLapack)

size_t host::LiveSolverObjects() { return Solvers().size() + AllParams().size(); }

}  // namespace tensord::cuda
