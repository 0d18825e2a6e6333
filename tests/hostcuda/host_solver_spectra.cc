// cuSOLVER's dense 64-bit eigenvalues and singular values over LAPACK.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/hostcuda/solver_call.h"

namespace tensord::cuda {
namespace {

int Eigenvalues(int n, float* a, int lda, float* w, float* vr, int ldvr) {
  return LAPACKE_sgeev(LAPACK_COL_MAJOR, 'N', vr == nullptr ? 'N' : 'V', n, a, lda, w, w + n, nullptr, 1, vr, ldvr);
}
int Eigenvalues(int n, double* a, int lda, double* w, double* vr, int ldvr) {
  return LAPACKE_dgeev(LAPACK_COL_MAJOR, 'N', vr == nullptr ? 'N' : 'V', n, a, lda, w, w + n, nullptr, 1, vr, ldvr);
}
int Eigenvalues(int n, ComplexFloat* a, int lda, ComplexFloat* w, ComplexFloat* vr, int ldvr) {
  using C = lapack_complex_float;
  return LAPACKE_cgeev(LAPACK_COL_MAJOR, 'N', vr == nullptr ? 'N' : 'V', n, reinterpret_cast<C*>(a), lda,
                       reinterpret_cast<C*>(w), nullptr, 1, reinterpret_cast<C*>(vr), ldvr);
}
int Eigenvalues(int n, ComplexDouble* a, int lda, ComplexDouble* w, ComplexDouble* vr, int ldvr) {
  using C = lapack_complex_double;
  return LAPACKE_zgeev(LAPACK_COL_MAJOR, 'N', vr == nullptr ? 'N' : 'V', n, reinterpret_cast<C*>(a), lda,
                       reinterpret_cast<C*>(w), nullptr, 1, reinterpret_cast<C*>(vr), ldvr);
}

bool IsMode(int mode) { return mode == kSolverVectors || mode == kSolverNoVectors; }

// As cuSOLVER counts.
bool IsBatch(int64_t n, int64_t batch) { return batch >= 1 && batch <= 16384 && batch * n * n <= INT32_MAX; }

// The workspaces of a batch: those of its matrices.
Workspace WorkspaceOfBatch(int type, int64_t n, int64_t batch) {
  Workspace work = WorkspaceOf(type, n, n);
  work.device_bytes *= static_cast<size_t>(batch);
  return work;
}

}  // namespace

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

HOST_CUDA_EXPORT SolverResult cusolverDnXsyevBatched_bufferSize(SolverHandle handle, SolverParams params, int mode,
                                                                int uplo, int64_t n, int type, const void*, int64_t lda,
                                                                int w_type, const void*, int compute_type,
                                                                size_t* device_bytes, size_t* host_bytes,
                                                                int64_t batch) {
  HOST_ENTER_SOLVER();
  if (w_type != RealTypeOf(type) || !IsMode(mode) || !IsUplo(uplo) || !IsBatch(n, batch)) return kSolverInvalidValue;
  if (const SolverResult result = TellWork({handle, params, type, compute_type}, {n, n, lda}, device_bytes, host_bytes);
      result != kSolverSuccess) {
    return result;
  }
  *device_bytes = WorkspaceOfBatch(type, n, batch).device_bytes;
  return kSolverSuccess;
}

// Matrices lie lda x n elements apart, and have a status each.
HOST_CUDA_EXPORT SolverResult cusolverDnXsyevBatched(SolverHandle handle, SolverParams params, int mode, int uplo,
                                                     int64_t n, int type, void* a, int64_t lda, int w_type, void* w,
                                                     int compute_type, void* device_work, size_t device_bytes,
                                                     void* host_work, size_t host_bytes, int* info, int64_t batch) {
  HOST_ENTER_SOLVER();
  if (const SolverResult result = Call{handle, params, type, compute_type}.Check(); result != 0) return result;
  const Matrix matrices = {n, n * batch, lda};
  if (!IsBatch(n, batch) || !Matrix{n, n, lda}.IsSound()) return kSolverInvalidValue;
  const Workspace work = WorkspaceOfBatch(type, n, batch);
  char* filled = nullptr;
  int* const to_info = RevealVector<int>(info, batch);
  if (!IsUplo(uplo) || !IsMode(mode) || w_type != RealTypeOf(type) || to_info == nullptr ||
      !TakeWork(work, device_work, device_bytes, host_work, host_bytes, &filled)) {
    return kSolverInvalidValue;
  }
  SolverResult result = kSolverInvalidValue;
  VisitType(type, [&]<typename T, typename Lapack>() {
    T* const at = RevealMatrix<T>(a, matrices);
    auto* const to_w = RevealVector<typename Lapack::Real>(w, n * batch);
    if (at == nullptr || to_w == nullptr) return;
    result = EnqueueWork(handle, "cusolverDnXsyevBatched", filled, work.device_bytes, to_info, [=] {
      for (int64_t b = 0; b < batch; ++b) {
        to_info[b] = Lapack::Eigen(mode == kSolverVectors ? 'V' : 'N', UploOf(uplo), static_cast<int>(n),
                                   at + b * lda * n, static_cast<int>(lda), to_w + b * n);
      }
      return to_info[0];
    });
  });
  return result;
}

HOST_CUDA_EXPORT SolverResult cusolverDnXgeev_bufferSize(SolverHandle handle, SolverParams params, int left_mode,
                                                         int right_mode, int64_t n, int type, const void*, int64_t lda,
                                                         int w_type, const void*, int vl_type, const void*, int64_t,
                                                         int vr_type, const void*, int64_t, int compute_type,
                                                         size_t* device_bytes, size_t* host_bytes) {
  HOST_ENTER_SOLVER();
  if (w_type != type || vl_type != type || vr_type != type) return kSolverInvalidValue;
  if (left_mode != kSolverNoVectors || !IsMode(right_mode)) return kSolverInvalidValue;
  return TellWork({handle, params, type, compute_type}, {n, n, lda}, device_bytes, host_bytes);
}

// Values and vectors of the matrix's type: of real ones W has all real parts and then all imaginary ones, and a pair's
// columns of VR are the parts of its first vector.
HOST_CUDA_EXPORT SolverResult cusolverDnXgeev(SolverHandle handle, SolverParams params, int left_mode, int right_mode,
                                              int64_t n, int type, void* a, int64_t lda, int w_type, void* w,
                                              int vl_type, void*, int64_t ldvl, int vr_type, void* vr, int64_t ldvr,
                                              int compute_type, void* device_work, size_t device_bytes, void* host_work,
                                              size_t host_bytes, int* info) {
  HOST_ENTER_SOLVER();
  if (const SolverResult result = Call{handle, params, type, compute_type}.Check(); result != 0) return result;
  const bool has_vectors = right_mode == kSolverVectors;
  const Matrix matrix = {n, n, lda}, vectors = {n, n, ldvr};
  const Workspace work = WorkspaceOf(type, n, n);
  char* filled = nullptr;
  int* const to_info = RevealVector<int>(info, 1);
  if (!matrix.IsSound() || left_mode != kSolverNoVectors || !IsMode(right_mode) || ldvl < 1 || ldvr < 1 ||
      (has_vectors && !vectors.IsSound()) || w_type != type || vl_type != type || vr_type != type ||
      to_info == nullptr || !TakeWork(work, device_work, device_bytes, host_work, host_bytes, &filled)) {
    return kSolverInvalidValue;
  }
  SolverResult result = kSolverInvalidValue;
  VisitType(type, [&]<typename T, typename Lapack>() {
    T* const at = RevealMatrix<T>(a, matrix);
    T* const to_w = RevealVector<T>(w, type == RealTypeOf(type) ? 2 * n : n);
    T* const to_vr = has_vectors ? RevealMatrix<T>(vr, vectors) : nullptr;
    if (at == nullptr || to_w == nullptr || (has_vectors && to_vr == nullptr)) return;
    result = EnqueueWork(handle, "cusolverDnXgeev", filled, work.device_bytes, to_info, [=] {
      return Eigenvalues(static_cast<int>(n), at, static_cast<int>(lda), to_w, to_vr, static_cast<int>(ldvr));
    });
  });
  return result;
}

}  // namespace tensord::cuda
