#ifndef TENSORD_BACKENDS_CUDA_KERNELS_LT_BATCHES_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_LT_BATCHES_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/kernels/dot_plan.h"
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/kernels/lt_product.h"

namespace tensord::cuda {

// A product of batches of matrices by cublasLt: in one call, or in parts of a batch for which it has an algorithm.
// Immutable after Create, so thread-safe.
class LtBatches {
 public:
  // The calling thread has entered the context. Null where the library has no algorithm for parts either.
  static absl::StatusOr<std::unique_ptr<LtBatches>> Create(const DotPlan& plan, const DotTypes& types,
                                                           const KernelContext& context);

  // Enqueues result = left · right, with the workspace, the stream and the handle of the launch.
  absl::Status Enqueue(const Launch& launch, CuAddress left, CuAddress right, CuAddress result) const;
  int64_t workspace_bytes() const;
  int64_t num_calls() const;

 private:
  LtBatches(const DotPlan& plan, const DotTypes& types, int64_t part);

  const int64_t batch_, part_;                             // matrices of all, and of a call
  const int64_t left_bytes_, right_bytes_, result_bytes_;  // between matrices
  std::unique_ptr<LtProduct> whole_, rest_;                // of a part, and of the last one if it is smaller
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_LT_BATCHES_H_
