#ifndef TENSORD_BACKENDS_CUDA_BIASED_PRODUCTS_H_
#define TENSORD_BACKENDS_CUDA_BIASED_PRODUCTS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cuda/kernels/kernel.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/backend/parallel_for.h"

namespace tensord::cuda {

// Products of a session whose result goes nowhere but into a sum with a bias: both segments are one kernel, and the
// product itself has no memory. Confined to the thread that has it, but for Take.
class BiasedProducts {
 public:
  // Finds them, and makes their kernels, as KernelMakers does. The segments must outlive it.
  static absl::StatusOr<BiasedProducts> Find(absl::Span<const SegmentInstruction> segments,
                                             const KernelContext& context, const ParallelFor& parallel);

  // Returns the segments as they run: of a pair the first one has what both read from outside and write, the second
  // nothing. They are this object's.
  absl::Span<const SegmentInstruction> segments() const { return changed_.empty() ? segments_ : changed_; }
  // Returns the kernel of one of these segments, or its refusal; null where the segment is in no pair. Once for each,
  // on any thread.
  absl::StatusOr<std::unique_ptr<Kernel>> Take(const BoundInstruction& instruction);
  const std::vector<SegmentChain>& chains() const { return chains_; }

 private:
  explicit BiasedProducts(absl::Span<const SegmentInstruction> segments) : segments_(segments) {}
  void Join(size_t first, size_t product, absl::StatusOr<std::unique_ptr<Kernel>> kernel);

  absl::Span<const SegmentInstruction> segments_;
  std::vector<SegmentInstruction> changed_;                   // all of them; empty: none is changed
  std::vector<std::unique_ptr<std::vector<Slot>>> operands_;  // of the changed ones
  absl::flat_hash_map<const BoundInstruction*, absl::StatusOr<std::unique_ptr<Kernel>>> kernels_;
  std::vector<SegmentChain> chains_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_BIASED_PRODUCTS_H_
