#include "backends/cuda/device/library_handles.h"

#include "backends/cuda/libraries/status.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {

// A lost context has nothing left to destroy. Libraries that gave a handle are open.
LibraryHandles::~LibraryHandles() {
  if (!context_->Enter().ok()) return;
  if (blas_lt_ != nullptr) (*libraries_->blas_lt())->cublasLtDestroy(blas_lt_);
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

}  // namespace tensord::cuda
