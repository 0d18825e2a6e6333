#include "backends/cuda/linalg/solver_call.h"

#include "absl/strings/str_cat.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

// A handle with parameters that nothing runs on.
class Questioner {
 public:
  explicit Questioner(const Solver* library) : scope_{.library = library} {}
  ~Questioner() {
    if (scope_.params != nullptr) scope_.library->cusolverDnDestroyParams(scope_.params);
    if (scope_.handle != nullptr) scope_.library->cusolverDnDestroy(scope_.handle);
  }
  Questioner(const Questioner&) = delete;
  Questioner& operator=(const Questioner&) = delete;

  absl::Status Open() {
    const Solver& library = *scope_.library;
    RETURN_IF_ERROR(StatusOfSolver(library.cusolverDnCreate(&scope_.handle), "cusolverDnCreate"));
    RETURN_IF_ERROR(StatusOfSolver(library.cusolverDnSetDeterministicMode(scope_.handle, kSolverDeterministic),
                                   "cusolverDnSetDeterministicMode"));
    return StatusOfSolver(library.cusolverDnCreateParams(&scope_.params), "cusolverDnCreateParams");
  }
  const SolverScope& scope() const { return scope_; }

 private:
  SolverScope scope_;
};

}  // namespace

SolverTypes SolverTypesOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {kCudaReal32, kCudaReal32};
    case DType::kC64:
      return {kCudaComplex32, kCudaReal32};
    case DType::kC128:
      return {kCudaComplex64, kCudaReal64};
    default:
      return {kCudaReal64, kCudaReal64};
  }
}

absl::StatusOr<SolverWork> AskSolver(Libraries* libraries, absl::string_view task, absl::string_view function,
                                     absl::FunctionRef<SolverResult(const SolverScope&, SolverWork*)> ask) {
  ASSIGN_OR_RETURN(const Solver* const library, libraries->solver());
  Questioner questioner(library);
  RETURN_IF_ERROR(questioner.Open());
  SolverWork work;
  const SolverResult result = ask(questioner.scope(), &work);
  if (result == kSolverInvalidValue || result == kSolverNotSupported) {
    return Refuse(
        Refusal::kUnsupportedOnDevice,
        absl::StrCat("cuSOLVER does not take the sizes of ", task, ": ", StatusOfSolver(result, function).message(),
                     "; compute it on the device cpu, or of smaller matrices"));
  }
  RETURN_IF_ERROR(StatusOfSolver(result, function));
  return work;
}

absl::StatusOr<SolverScope> SolverScopeOf(const Launch& launch) {
  SolverScope scope;
  ASSIGN_OR_RETURN(scope.library, launch.handles->libraries().solver());
  ASSIGN_OR_RETURN(scope.handle, launch.handles->solver());
  ASSIGN_OR_RETURN(scope.params, launch.handles->solver_params());
  return scope;
}

}  // namespace tensord::cuda
