#ifndef TENSORD_BACKENDS_CUDA_LINALG_SOLVER_CALL_H_
#define TENSORD_BACKENDS_CUDA_LINALG_SOLVER_CALL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/libraries/libraries.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// An element's type as cuSOLVER numbers it, and that of the real numbers beside it.
struct SolverTypes {
  int type = 0;
  int real_type = 0;
};
SolverTypes SolverTypesOf(DType dtype);

// The arguments that each function of cuSOLVER begins with.
struct SolverScope {
  const Solver* library = nullptr;
  SolverHandle handle = nullptr;
  SolverParams params = nullptr;
};

// The workspaces that a function asks for.
struct SolverWork {
  size_t device_bytes = 0;
  size_t host_bytes = 0;
};

// Has a function ask for its workspaces, with a handle that goes again. The calling thread has entered the context.
// `function` is what fails, in its message. UNSUPPORTED_ON_DEVICE where it refuses its arguments, as functions do for
// `task` where sizes are beyond theirs.
absl::StatusOr<SolverWork> AskSolver(Libraries* libraries, absl::string_view task, absl::string_view function,
                                     absl::FunctionRef<SolverResult(const SolverScope&, SolverWork*)> ask);

// Returns the scope of a lane's run.
absl::StatusOr<SolverScope> SolverScopeOf(const Launch& launch);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_SOLVER_CALL_H_
