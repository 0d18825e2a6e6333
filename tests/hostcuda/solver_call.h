#ifndef TENSORD_TESTS_HOSTCUDA_SOLVER_CALL_H_
#define TENSORD_TESTS_HOSTCUDA_SOLVER_CALL_H_

#include <lapacke.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>

#include "tests/hostcuda/device_range.h"
#include "tests/hostcuda/handles.h"
#include "tests/hostcuda/host_calls.h"
#include "tests/hostcuda/host_context.h"
#include "tests/hostcuda/host_exports.h"
#include "tests/hostcuda/host_streams.h"

// The parts that the functions of cuSOLVER share. Arguments are checked as the documentation has them, and workspaces
// are filled: who gives too little, or reads them later, sees it.

namespace tensord::cuda {

struct SolverObject {
  CuStream stream = nullptr;
};
struct SolverParamsObject {};

using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;

inline host::Handles<SolverObject>& Solvers() {
  // cuSOLVER does not look for NaN.
  [[maybe_unused]] static const bool is_set = (LAPACKE_set_nancheck(0), true);
  static auto* const handles = new host::Handles<SolverObject>;
  return *handles;
}
inline host::Handles<SolverParamsObject>& AllParams() {
  static auto* const handles = new host::Handles<SolverParamsObject>;
  return *handles;
}

// LAPACK's functions of one element type. The real type is that of eigenvalues and singular values.
#define HOST_LAPACK(T, R, C, p, eigen, reflectors)                                                                \
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
    static int Orgqr(int m, int n, int k, T* a, int lda, const T* tau) {                                          \
      return LAPACKE_##p##reflectors(LAPACK_COL_MAJOR, m, n, k, reinterpret_cast<C*>(a), lda,                     \
                                     reinterpret_cast<const C*>(tau));                                            \
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
HOST_LAPACK(float, float, float, s, syevd, orgqr)
HOST_LAPACK(double, double, double, d, syevd, orgqr)
HOST_LAPACK(ComplexFloat, float, lapack_complex_float, c, heevd, ungqr)
HOST_LAPACK(ComplexDouble, double, lapack_complex_double, z, heevd, ungqr)

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

inline size_t BytesOfType(int type) {
  size_t bytes = 0;
  VisitType(type, [&]<typename T, typename Lapack>() { bytes = sizeof(T); });
  return bytes;
}
inline int RealTypeOf(int type) { return type == kCudaReal32 || type == kCudaComplex32 ? kCudaReal32 : kCudaReal64; }

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
inline Workspace WorkspaceOf(int type, int64_t m, int64_t n) {
  return {static_cast<size_t>((m + 1) * (n + 1)) * BytesOfType(type), static_cast<size_t>(16 * (m + n + 1))};
}

inline SolverResult TellWork(const Call& call, const Matrix& a, size_t* device_bytes, size_t* host_bytes) {
  if (const SolverResult result = call.Check(); result != kSolverSuccess) return result;
  if (!a.IsSound()) return kSolverInvalidValue;
  const Workspace work = WorkspaceOf(call.type, a.rows, a.columns);
  *device_bytes = work.device_bytes;
  *host_bytes = work.host_bytes;
  return kSolverSuccess;
}

// Checks the workspaces of a call, and fills the host's at once. `device` is then what its stream fills.
inline bool TakeWork(const Workspace& needed, void* device_work, size_t device_bytes, void* host_work,
                     size_t host_bytes, char** device) {
  *device = host::RevealRange(device_work, needed.device_bytes, host::kWorkspaceAlignment);
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

inline char UploOf(int uplo) { return uplo == kBlasLower ? 'L' : 'U'; }
inline bool IsUplo(int uplo) { return uplo == kBlasLower || uplo == kBlasUpper; }

// Begins a call of cuSOLVER.
#define HOST_ENTER_SOLVER()                                                                                            \
  if (const int injected = host::Calls::Get().Count(__func__, kSolverExecutionFailed); injected != 0) return injected; \
  if (!host::Context::Get().is_current()) return kSolverNotInitialized

}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_HOSTCUDA_SOLVER_CALL_H_
