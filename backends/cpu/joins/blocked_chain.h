#ifndef TENSORD_BACKENDS_CPU_JOINS_BLOCKED_CHAIN_H_
#define TENSORD_BACKENDS_CPU_JOINS_BLOCKED_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cpu/jit/options.h"
#include "backends/cpu/joins/chain_plan.h"
#include "backends/cpu/kernel/kernel.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// The kernels of a chain of segments, each made for one block, and the walk over the blocks. A thread takes a block and
// runs all kernels of it; what passes between them is in memory of the thread's own, part of the chain's scratch.
//
// Immutable after construction, so thread-safe. Run does not allocate, but for segments of very many operands. Same
// bits for any number of threads.
class BlockedChain {
 public:
  // `make` makes the kernel of an instruction that is not fused. Refuses what the kernels' factories refuse.
  static absl::StatusOr<BlockedChain> Create(const ChainPlan& plan, absl::FunctionRef<MakeKernel> make,
                                             const JitOptions& jit, int threads);

  size_t num_segments() const { return steps_.size(); }
  int64_t scratch_bytes() const { return slots_ * slot_bytes_; }
  std::string Describe(size_t segment) const;

  // `times` is empty, or has an entry a segment: the time of all, split as the segments took it.
  void Run(absl::Span<void* const> slots, void* scratch, ThreadPool& pool, absl::Span<SegmentTime> times) const;

 private:
  struct Step {
    std::unique_ptr<Kernel> kernel;
    BlockWalk walk;
    std::vector<ChainPlan::Place> operands;
    std::vector<ChainPlan::Place> results;
  };
  class Worker;

  BlockedChain() = default;

  std::vector<Step> steps_;
  int64_t num_blocks_ = 0;
  int64_t passing_bytes_ = 0;
  // Where a slot has what passes between kernels, their scratch and their workspace.
  int64_t scratch_offset_ = 0;
  int64_t workspace_offset_ = 0;
  int64_t slot_bytes_ = 0;
  int64_t slots_ = 1;
  size_t max_tensors_ = 0;
  size_t max_axes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_BLOCKED_CHAIN_H_
