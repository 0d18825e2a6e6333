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
  // algorithm. `has_bias`: a number is added to each row of the result, of which there is one matrix.
  static absl::StatusOr<std::unique_ptr<LtProduct>> Create(const DotPlan& plan, const DotTypes& types, bool has_bias,
                                                           const KernelContext& context);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  // Enqueues result = left · right + bias, with the workspace, the stream and the handle of the launch. `bias`: 0 where
  // there is none.
  absl::Status Enqueue(const Launch& launch, CuAddress left, CuAddress right, CuAddress bias, CuAddress result) const;
  int64_t workspace_bytes() const;

 private:
  LtProduct(const BlasLt* library, const DotPlan& plan, const DotTypes& types, bool has_bias);
  absl::Status Describe(const DotPlan& plan);
  // Makes a description, which the caller destroys, also where it is not complete.
  absl::Status MakeDesc(CuAddress bias, BlasLtMatmulDesc* desc) const;
  absl::Status AddLayout(const BatchedMatrix& matrix, DType dtype, int64_t batch, BlasLtMatrixLayout* layout);

  // Return whether there are algorithms: any, and one for these alignments.
  absl::StatusOr<bool> ChooseAll(BlasLtHandle handle);
  absl::StatusOr<bool> Choose(BlasLtHandle handle, uint32_t alignment_bytes, BlasLtHeuristic* chosen);
  absl::Status Multiply(const Launch& launch, BlasLtMatmulDesc desc, const BlasLtHeuristic& chosen, CuAddress left,
                        CuAddress right, CuAddress result) const;

  const BlasLt* const library_;
  const DotTypes types_;
  const int32_t left_operation_, right_operation_;
  const bool has_bias_;
  BlasLtMatmulDesc desc_ = nullptr;  // null where it has a bias: the bias's address is part of it
  BlasLtMatrixLayout left_ = nullptr, right_ = nullptr, result_ = nullptr;
  BlasLtHeuristic aligned_ = {}, any_ = {};
  // Factors, 1 and 0, of the type of the sums: 16 bytes hold each.
  alignas(16) std::array<char, 16> one_ = {}, zero_ = {};
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_LT_PRODUCT_H_
