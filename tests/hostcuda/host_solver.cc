// cuSOLVER's dense 64-bit functions over LAPACK. Arguments are checked as the documentation has them, and workspaces
// are filled: who gives too little, or reads them later, sees it.

#include <lapacke.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/hostcuda/device_range.h"
#include "tests/hostcuda/handles.h"
#include "tests/hostcuda/host_calls.h"
#include "tests/hostcuda/host_context.h"
#include "tests/hostcuda/host_exports.h"
#include "tests/hostcuda/host_streams.h"

namespace tensord::cuda {

struct SolverObject {
  CuStream stream = nullptr;
};
struct SolverParamsObject {};

namespace {

using host::Handles;
using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;

Handles<SolverObject>& Solvers() {
  static auto* const handles = new Handles<SolverObject>;
  return *handles;
}
Handles<SolverParamsObject>& AllParams() {
  static auto* const handles = new Handles<SolverParamsObject>;
  return *handles;
}

// LAPACK's functions of one element type. The real type is that of eigenvalues and singular values.
#define HOST_LAPACK(T, R, C, p, eigen)                                                                            \
  struct p##Lapack {                                                                                              \
    using Real = R;                                                                                               \
    static int Potrf(char uplo, int n, T* a, int lda) {                                                           \
      return LAPACKE_##p##potrf(LAPACK_COL_MAJOR, uplo, n, reinterpret_cast<C*>(a), lda);                         \
    }                                                                                                             \
    static int Getrf(int m, int n, T* a, int lda, int* pivots) {                                                  \
      return LAPACKE_##p##getrf(LAPACK_COL_MAJOR, m, n, reinterpret_cast<C*>(a), lda, pivots);                    \
    }                                                                                                             \
    static int Getrs(char op, int n, int columns, const T* a, int lda, const int* pivots, T* b, int ldb) {        \
      return LAPACKE_##p##getrs(LAPACK_COL_MAJOR, op, n, columns, reinterpret_cast<const C*>(a), lda, pivots,     \
                                reinterpret_cast<C*>(b), ldb);                                                    \
    }                                                                                                             \
    static int Geqrf(int m, int n, T* a, int lda, T* tau) {                                                       \
      return LAPACKE_##p##geqrf(LAPACK_COL_MAJOR, m, n, reinterpret_cast<C*>(a), lda, reinterpret_cast<C*>(tau)); \
    }                                                                                                             \
    static int Eigen(char job, char uplo, int n, T* a, int lda, R* w) {                                           \
      return LAPACKE_##p##eigen(LAPACK_COL_MAJOR, job, uplo, n, reinterpret_cast<C*>(a), lda, w);                 \
    }                                                                                                             \
    static int Gesvd(char job_u, char job_vt, int m, int n, T* a, int lda, R* s, T* u, int ldu, T* vt, int ldvt,  \
                     R* superb) {                                                                                 \
      return LAPACKE_##p##gesvd(LAPACK_COL_MAJOR, job_u, job_vt, m, n, reinterpret_cast<C*>(a), lda, s,           \
                                reinterpret_cast<C*>(u), ldu, reinterpret_cast<C*>(vt), ldvt, superb);            \
    }                                                                                                             \
  };
HOST_LAPACK(float, float, float, s, syevd)
HOST_LAPACK(double, double, double, d, syevd)
HOST_LAPACK(ComplexFloat, float, lapack_complex_float, c, heevd)
HOST_LAPACK(ComplexDouble, double, lapack_complex_double, z, heevd)

// Calls `f.template operator()<T, Lapack>()`; false for a type that cuSOLVER does not have.
template <typename F>
bool VisitType(int type, const F& f) {
  switch (type) {
    case kCudaReal32:
      f.template operator()<float, sLapack>();
      return true;
    case kCudaReal64:
      f.template operator()<double, dLapack>();
      return true;
    case kCudaComplex32:
      f.template operator()<ComplexFloat, cLapack>();
      return true;
    case kCudaComplex64:
      f.template operator()<ComplexDouble, zLapack>();
      return true;
    default:
      return false;
  }
}

size_t BytesOfType(int type) {
  size_t bytes = 0;
  VisitType(type, [&]<typename T, typename Lapack>() { bytes = sizeof(T); });
  return bytes;
}
int RealTypeOf(int type) { return type == kCudaReal32 || type == kCudaComplex32 ? kCudaReal32 : kCudaReal64; }

// A matrix in device memory, by columns.
struct Matrix {
  int64_t rows, columns, leading;
  bool IsSound() const {
    return rows >= 0 && columns >= 0 && rows < INT32_MAX && columns < INT32_MAX && leading < INT32_MAX &&
           leading >= std::max<int64_t>(1, rows);
  }
  size_t num_elements() const {
    return rows == 0 || columns == 0 ? 0 : static_cast<size_t>((columns - 1) * leading + rows);
  }
};

// The handle, parameters and types that each function has.
struct Call {
  SolverHandle handle;
  SolverParams params;
  int type, compute_type;
  SolverResult Check() const {
    if (Solvers().Find(handle) == nullptr) return kSolverNotInitialized;
    if (AllParams().Find(params) == nullptr) return kSolverInvalidValue;
    return BytesOfType(type) > 0 && type == compute_type ? kSolverSuccess : kSolverInvalidValue;
  }
};

// The workspaces of a function: how much it asks for, by the size of its problem.
struct Workspace {
  size_t device_bytes, host_bytes;
};
Workspace WorkspaceOf(int type, int64_t m, int64_t n) {
  return {static_cast<size_t>((m + 1) * (n + 1)) * BytesOfType(type), static_cast<size_t>(16 * (m + n + 1))};
}

SolverResult TellWork(const Call& call, const Matrix& a, size_t* device_bytes, size_t* host_bytes) {
  if (const SolverResult result = call.Check(); result != kSolverSuccess) return result;
  if (!a.IsSound()) return kSolverInvalidValue;
  const Workspace work = WorkspaceOf(call.type, a.rows, a.columns);
  *device_bytes = work.device_bytes;
  *host_bytes = work.host_bytes;
  return kSolverSuccess;
}

// Checks the workspaces of a call, and fills the host's at once. `device` is then what its stream fills.
bool TakeWork(const Workspace& needed, void* device_work, size_t device_bytes, void* host_work, size_t host_bytes,
              char** device) {
  *device = host::RevealRange(device_work, needed.device_bytes, 16);
  if (*device == nullptr || device_bytes < needed.device_bytes) return false;
  if (host_work == nullptr || host_bytes < needed.host_bytes) return false;
  std::memset(host_work, 0xA5, needed.host_bytes);
  return true;
}

template <typename T>
T* RevealMatrix(const void* pointer, const Matrix& matrix) {
  return reinterpret_cast<T*>(host::RevealRange(pointer, matrix.num_elements() * sizeof(T), alignof(T)));
}

template <typename T>
T* RevealVector(const void* pointer, int64_t elements) {
  return reinterpret_cast<T*>(host::RevealRange(pointer, static_cast<size_t>(elements) * sizeof(T), alignof(T)));
}

// Enqueues a function's work on the handle's stream, of which `info` becomes the result.
template <typename F>
SolverResult EnqueueWork(SolverHandle handle, const char* function, char* work, size_t work_bytes, int* info,
                         const F& f) {
  const auto solver = Solvers().Find(handle);
  const auto stream = host::Streams().Find(solver->stream);
  if (stream == nullptr) return kSolverInvalidValue;
  const CuResult pushed = stream->Enqueue(function, [=] {
    if (work != nullptr) std::memset(work, 0xA5, work_bytes);
    *info = f();
  });
  return pushed == kCuSuccess ? kSolverSuccess : kSolverExecutionFailed;
}

char UploOf(int uplo) { return uplo == kBlasLower ? 'L' : 'U'; }
bool IsUplo(int uplo) { return uplo == kBlasLower || uplo == kBlasUpper; }

}  // namespace

#define HOST_ENTER_SOLVER()                                                                                            \
  if (const int injected = host::Calls::Get().Count(__func__, kSolverExecutionFailed); injected != 0) return injected; \
  if (!host::Context::Get().is_current()) return kSolverNotInitialized

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

HOST_CUDA_EXPORT SolverResult cusolverDnXsyevd_bufferSize(SolverHandle handle, SolverParams params, int, int, int64_t n,
                                                          int type, const void*, int64_t lda, int w_type, const void*,
                                                          int compute_type, size_t* device_bytes, size_t* host_bytes) {
  HOST_ENTER_SOLVER();
  if (w_type != RealTypeOf(type)) return kSolverInvalidValue;
  return TellWork({handle, params, type, compute_type}, {n, n, lda}, device_bytes, host_bytes);
}

HOST_CUDA_EXPORT SolverResult cusolverDnXsyevd(SolverHandle handle, SolverParams params, int mode, int uplo, int64_t n,
                                               int type, void* a, int64_t lda, int w_type, void* w, int compute_type,
                                               void* device_work, size_t device_bytes, void* host_work,
                                               size_t host_bytes, int* info) {
  HOST_ENTER_SOLVER();
  if (const SolverResult result = Call{handle, params, type, compute_type}.Check(); result != 0) return result;
  const Matrix matrix = {n, n, lda};
  const Workspace work = WorkspaceOf(type, n, n);
  char* filled = nullptr;
  int* const to_info = RevealVector<int>(info, 1);
  if (!matrix.IsSound() || !IsUplo(uplo) || w_type != RealTypeOf(type) || to_info == nullptr ||
      (mode != kSolverVectors && mode != kSolverNoVectors) ||
      !TakeWork(work, device_work, device_bytes, host_work, host_bytes, &filled)) {
    return kSolverInvalidValue;
  }
  SolverResult result = kSolverInvalidValue;
  VisitType(type, [&]<typename T, typename Lapack>() {
    T* const at = RevealMatrix<T>(a, matrix);
    auto* const to_w = RevealVector<typename Lapack::Real>(w, n);
    if (at == nullptr || to_w == nullptr) return;
    result = EnqueueWork(handle, "cusolverDnXsyevd", filled, work.device_bytes, to_info, [=] {
      return Lapack::Eigen(mode == kSolverVectors ? 'V' : 'N', UploOf(uplo), static_cast<int>(n), at,
                           static_cast<int>(lda), to_w);
    });
  });
  return result;
}

HOST_CUDA_EXPORT SolverResult cusolverDnXgesvd_bufferSize(SolverHandle handle, SolverParams params, signed char,
                                                          signed char, int64_t m, int64_t n, int type, const void*,
                                                          int64_t lda, int s_type, const void*, int u_type, const void*,
                                                          int64_t, int vt_type, const void*, int64_t, int compute_type,
                                                          size_t* device_bytes, size_t* host_bytes) {
  HOST_ENTER_SOLVER();
  if (s_type != RealTypeOf(type) || u_type != type || vt_type != type || m < n) return kSolverInvalidValue;
  return TellWork({handle, params, type, compute_type}, {m, n, lda}, device_bytes, host_bytes);
}

// Has at least as many rows as columns, as documented.
HOST_CUDA_EXPORT SolverResult cusolverDnXgesvd(SolverHandle handle, SolverParams params, signed char job_u,
                                               signed char job_vt, int64_t m, int64_t n, int type, void* a, int64_t lda,
                                               int s_type, void* s, int u_type, void* u, int64_t ldu, int vt_type,
                                               void* vt, int64_t ldvt, int compute_type, void* device_work,
                                               size_t device_bytes, void* host_work, size_t host_bytes, int* info) {
  HOST_ENTER_SOLVER();
  if (const SolverResult result = Call{handle, params, type, compute_type}.Check(); result != 0) return result;
  const bool has_vectors = job_u != 'N' || job_vt != 'N';
  const Matrix matrix = {m, n, lda}, left = {m, job_u == 'A' ? m : n, ldu}, right = {n, n, ldvt};
  const Workspace work = WorkspaceOf(type, m, n);
  char* filled = nullptr;
  int* const to_info = RevealVector<int>(info, 1);
  const bool are_jobs =
      (job_u == 'N' && job_vt == 'N') || ((job_u == 'A' || job_u == 'S') && (job_vt == 'A' || job_vt == 'S'));
  if (!matrix.IsSound() || m < n || n < 1 || !are_jobs || s_type != RealTypeOf(type) || u_type != type ||
      vt_type != type || to_info == nullptr || (has_vectors && (!left.IsSound() || !right.IsSound())) ||
      !TakeWork(work, device_work, device_bytes, host_work, host_bytes, &filled)) {
    return kSolverInvalidValue;
  }
  SolverResult result = kSolverInvalidValue;
  VisitType(type, [&]<typename T, typename Lapack>() {
    using Real = typename Lapack::Real;
    T* const at = RevealMatrix<T>(a, matrix);
    Real* const to_s = RevealVector<Real>(s, n);
    T* const to_u = has_vectors ? RevealMatrix<T>(u, left) : nullptr;
    T* const to_vt = has_vectors ? RevealMatrix<T>(vt, right) : nullptr;
    if (at == nullptr || to_s == nullptr || (has_vectors && (to_u == nullptr || to_vt == nullptr))) return;
    result = EnqueueWork(handle, "cusolverDnXgesvd", filled, work.device_bytes, to_info, [=] {
      std::vector<Real> superb(static_cast<size_t>(n));
      return Lapack::Gesvd(static_cast<char>(job_u), static_cast<char>(job_vt), static_cast<int>(m),
                           static_cast<int>(n), at, static_cast<int>(lda), to_s, to_u,
                           static_cast<int>(std::max<int64_t>(1, ldu)), to_vt,
                           static_cast<int>(std::max<int64_t>(1, ldvt)), superb.data());
    });
  });
  return result;
}

}  // namespace tensord::cuda
