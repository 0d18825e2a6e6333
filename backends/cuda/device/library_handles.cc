#include "backends/cuda/device/library_handles.h"

#include "backends/cuda/libraries/status.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {

// The libraries' memory of the host stays where a context is lost: NVIDIA's functions wait for the device when they end
// a handle, and nothing says that they may be called without its context, or that a handle may be used with another.
// Libraries that gave a handle are open.
LibraryHandles::~LibraryHandles() {
  if (!context_->Enter().ok()) return;
  if (blas_lt_ != nullptr) (*libraries_->blas_lt())->cublasLtDestroy(blas_lt_);
  if (blas_ != nullptr) (*libraries_->blas())->cublasDestroy_v2(blas_);
  if (solver_params_ != nullptr) (*libraries_->solver())->cusolverDnDestroyParams(solver_params_);
  if (solver_ != nullptr) (*libraries_->solver())->cusolverDnDestroy(solver_);
}

absl::StatusOr<BlasLtHandle> LibraryHandles::blas_lt() {
  if (blas_lt_ == nullptr) {
    ASSIGN_OR_RETURN(const BlasLt* const library, libraries_->blas_lt());
    RETURN_IF_ERROR(StatusOfBlas(library->cublasLtCreate(&blas_lt_), "cublasLtCreate"));
  }
  return blas_lt_;
}

absl::StatusOr<SolverHandle> LibraryHandles::solver() {
  if (solver_ != nullptr) return solver_;
  ASSIGN_OR_RETURN(const Solver* const library, libraries_->solver());
  SolverHandle made = nullptr;
  RETURN_IF_ERROR(StatusOfSolver(library->cusolverDnCreate(&made), "cusolverDnCreate"));
  absl::Status set = StatusOfSolver(library->cusolverDnSetStream(made, stream_), "cusolverDnSetStream");
  if (set.ok()) {
    set = StatusOfSolver(library->cusolverDnSetDeterministicMode(made, kSolverDeterministic),
                         "cusolverDnSetDeterministicMode");
  }
  if (!set.ok()) {
    library->cusolverDnDestroy(made);
    return set;
  }
  solver_ = made;
  return solver_;
}

absl::StatusOr<SolverParams> LibraryHandles::solver_params() {
  if (solver_params_ == nullptr) {
    ASSIGN_OR_RETURN(const Solver* const library, libraries_->solver());
    RETURN_IF_ERROR(StatusOfSolver(library->cusolverDnCreateParams(&solver_params_), "cusolverDnCreateParams"));
  }
  return solver_params_;
}

absl::Status LibraryHandles::MakeBlas() {
  if (blas_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Blas* const library, libraries_->blas());
  BlasHandle made = nullptr;
  RETURN_IF_ERROR(StatusOfBlas(library->cublasCreate_v2(&made), "cublasCreate"));
  absl::Status set = StatusOfBlas(library->cublasSetStream_v2(made, stream_), "cublasSetStream");
  if (set.ok()) {
    set = StatusOfBlas(library->cublasSetAtomicsMode(made, kBlasAtomicsNotAllowed), "cublasSetAtomicsMode");
  }
  if (set.ok()) set = StatusOfBlas(library->cublasSetMathMode(made, kBlasPedanticMath), "cublasSetMathMode");
  if (!set.ok()) {
    library->cublasDestroy_v2(made);
    return set;
  }
  blas_ = made;
  return absl::OkStatus();
}

absl::StatusOr<BlasHandle> LibraryHandles::blas(CuAddress workspace, int64_t workspace_bytes) {
  RETURN_IF_ERROR(MakeBlas());
  ASSIGN_OR_RETURN(const Blas* const library, libraries_->blas());
  RETURN_IF_ERROR(StatusOfBlas(
      library->cublasSetWorkspace_v2(blas_, reinterpret_cast<void*>(workspace), static_cast<size_t>(workspace_bytes)),
      "cublasSetWorkspace"));
  return blas_;
}

}  // namespace tensord::cuda
