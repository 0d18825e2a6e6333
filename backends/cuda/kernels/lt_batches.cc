#include "backends/cuda/kernels/lt_batches.h"

#include <algorithm>

#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

// The most blocks that a grid has along the axis on which kernels count matrices.
constexpr int64_t kMostLtBatch = 65535;

absl::StatusOr<std::unique_ptr<LtProduct>> LtPart(DotPlan plan, int64_t batch, const DotTypes& types,
                                                  const KernelContext& context) {
  plan.batch = batch;
  return LtProduct::Create(plan, types, context);
}

}  // namespace

LtBatches::LtBatches(const DotPlan& plan, const DotTypes& types, int64_t part)
    : batch_(plan.batch),
      part_(part),
      left_bytes_(plan.left.matrix.batch_stride * SizeOf(types.factor)),
      right_bytes_(plan.right.matrix.batch_stride * SizeOf(types.factor)),
      result_bytes_(plan.result.batch_stride * SizeOf(types.result)) {}

absl::StatusOr<std::unique_ptr<LtBatches>> LtBatches::Create(const DotPlan& plan, const DotTypes& types,
                                                             const KernelContext& context) {
  for (const int64_t part : {plan.batch, kMostLtBatch}) {
    if (part > plan.batch) break;
    std::unique_ptr<LtBatches> batches(new LtBatches(plan, types, part));
    ASSIGN_OR_RETURN(batches->whole_, LtPart(plan, part, types, context));
    if (batches->whole_ == nullptr) continue;
    const int64_t rest = plan.batch % part;
    if (rest == 0) return batches;
    ASSIGN_OR_RETURN(batches->rest_, LtPart(plan, rest, types, context));
    if (batches->rest_ != nullptr) return batches;
  }
  return nullptr;
}

absl::Status LtBatches::Enqueue(const Launch& launch, CuAddress left, CuAddress right, CuAddress result) const {
  for (int64_t b = 0; b < batch_; b += part_) {
    const LtProduct& product = batch_ - b < part_ ? *rest_ : *whole_;
    const auto at = [b](CuAddress base, int64_t bytes) { return base + static_cast<CuAddress>(b * bytes); };
    RETURN_IF_ERROR(product.Enqueue(launch, at(left, left_bytes_), at(right, right_bytes_), at(result, result_bytes_)));
  }
  return absl::OkStatus();
}

int64_t LtBatches::workspace_bytes() const {
  return std::max(whole_->workspace_bytes(), rest_ == nullptr ? 0 : rest_->workspace_bytes());
}

int64_t LtBatches::num_calls() const { return CeilDiv(batch_, part_); }

}  // namespace tensord::cuda
