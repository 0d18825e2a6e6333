#ifndef TENSORD_BACKENDS_CUDA_KERNELS_LT_PRODUCT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_LT_PRODUCT_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/kernels/dot_plan.h"
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/libraries/libraries.h"

namespace tensord::cuda {

// A product of batches of matrices by cublasLt, with its algorithms: one for addresses that are multiples of 16 bytes,
// and one for any. Immutable after Create, so thread-safe.
class LtProduct {
 public:
  // The calling thread has entered the context. Null for sizes that the library does not count to, and where it has no
  // algorithm.
  static absl::StatusOr<std::unique_ptr<LtProduct>> Create(const DotPlan& plan, const DotTypes& types,
                                                           const KernelContext& context);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  // Enqueues result = left · right, with the workspace, the stream and the handle of the launch.
  absl::Status Enqueue(const Launch& launch, CuAddress left, CuAddress right, CuAddress result) const;
  int64_t workspace_bytes() const;

 private:
  explicit LtProduct(const BlasLt* library) : library_(library) {}
  absl::Status Describe(const DotPlan& plan, const DotTypes& types);
  absl::Status AddLayout(const BatchedMatrix& matrix, DType dtype, int64_t batch, BlasLtMatrixLayout* layout);

  // Returns whether there are algorithms.
  absl::StatusOr<bool> ChooseAll(BlasLtHandle handle, const DotTypes& types);

  const BlasLt* const library_;
  BlasLtMatmulDesc desc_ = nullptr;
  BlasLtMatrixLayout left_ = nullptr, right_ = nullptr, result_ = nullptr;
  BlasLtHeuristic aligned_ = {}, any_ = {};
  // Factors, 1 and 0, of the type of the sums: 16 bytes hold each.
  alignas(16) std::array<char, 16> one_ = {}, zero_ = {};
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_LT_PRODUCT_H_
