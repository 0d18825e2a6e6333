#ifndef TENSORD_BACKENDS_CPU_JOINS_PRODUCT_EPILOGUE_H_
#define TENSORD_BACKENDS_CPU_JOINS_PRODUCT_EPILOGUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/epilogue.h"
#include "backends/cpu/joins/join.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// Two segments that run together: a product, and the elementwise kernel that alone reads its result. It runs on each
// piece of the result while that lies in the cache of the thread that made it. Pieces are made in memory of the
// thread's own if no sum is put together in the result, else in the memory of the kernel's result. Same bits as of the
// two by themselves.
class ProductEpilogue final : public Join {
 public:
  static constexpr size_t kNumSegments = 2;  // the product and the map

  // Plans the first two of these segments; null if they do not run together.
  static std::unique_ptr<const ProductEpilogue> Plan(absl::Span<const SegmentInstruction> segments,
                                                     const JoinContext& context);

  size_t num_segments() const override { return kNumSegments; }
  std::vector<Slot> passing() const override { return {passing_}; }
  int64_t scratch_bytes() const override { return product_.scratch_bytes(); }
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  std::string Describe(size_t segment) const override;
  // Runs both, and splits their time by the kernel's.
  absl::Status Run(const JoinRun& run) const override;

 private:
  ProductEpilogue(Contraction product, Epilogue epilogue)
      : product_(std::move(product)), epilogue_(std::move(epilogue)) {}

  const Contraction product_;
  const Epilogue epilogue_;
  absl::InlinedVector<Slot, 2> factors_;
  absl::InlinedVector<Slot, 4> operands_;
  absl::InlinedVector<Slot, 2> results_;
  Slot passing_ = -1;
  size_t operand_ = 0;  // of the kernel: the product
  bool is_in_place_ = false;
  // The offset in the workspace of blocks and of the memory of tasks.
  int64_t blocks_offset_ = 0;
  int64_t tasks_offset_ = 0;
  int64_t task_bytes_ = 0;
  int64_t workspace_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_PRODUCT_EPILOGUE_H_
