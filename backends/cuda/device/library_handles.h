#ifndef TENSORD_BACKENDS_CUDA_DEVICE_LIBRARY_HANDLES_H_
#define TENSORD_BACKENDS_CUDA_DEVICE_LIBRARY_HANDLES_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/libraries/libraries.h"

namespace tensord::cuda {

// A lane's handles to NVIDIA's libraries, each made when a kernel first asks for it, for the lane's stream. Confined to
// the thread that has the lane, which has entered the context. The libraries must outlive it.
class LibraryHandles {
 public:
  LibraryHandles(std::shared_ptr<Context> context, Libraries* libraries, CuStream stream)
      : context_(std::move(context)), libraries_(libraries), stream_(stream) {}
  ~LibraryHandles();
  LibraryHandles(const LibraryHandles&) = delete;
  LibraryHandles& operator=(const LibraryHandles&) = delete;

  Libraries& libraries() const { return *libraries_; }
  // Products name their stream themselves.
  absl::StatusOr<BlasLtHandle> blas_lt();
  // Its results are the same from run to run. The second gives the parameters that its functions take beside it.
  absl::StatusOr<SolverHandle> solver();
  absl::StatusOr<SolverParams> solver_params();
  // The caller's kernel gives it a workspace, which it may use until the next call. The first call makes it, unless the
  // other function did.
  absl::StatusOr<BlasHandle> blas(CuAddress workspace, int64_t workspace_bytes);
  absl::Status MakeBlas();

 private:
  const std::shared_ptr<Context> context_;
  Libraries* const libraries_;
  const CuStream stream_;
  BlasLtHandle blas_lt_ = nullptr;
  SolverHandle solver_ = nullptr;
  SolverParams solver_params_ = nullptr;
  BlasHandle blas_ = nullptr;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_DEVICE_LIBRARY_HANDLES_H_
