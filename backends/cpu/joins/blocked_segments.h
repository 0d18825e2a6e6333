#ifndef TENSORD_BACKENDS_CPU_JOINS_BLOCKED_SEGMENTS_H_
#define TENSORD_BACKENDS_CPU_JOINS_BLOCKED_SEGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cpu/joins/block_plan.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/join.h"
#include "backends/cpu/kernel/kernel.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// The kernels of a plan's segments, each made for one block, and the walk over the blocks. A thread takes a block and
// runs all kernels of it; values that pass between them are in memory of the thread's own, part of the scratch.
//
// Immutable after construction, so thread-safe. Run does not allocate, but for segments of very many operands. Same
// bits for any number of threads.
class BlockedSegments final : public Join {
 public:
  // Makes the kernels of the plan. Refuses as their factories do.
  static absl::StatusOr<std::unique_ptr<const BlockedSegments>> Create(const BlockPlan& plan,
                                                                       const JoinContext& context);

  size_t num_segments() const override { return steps_.size(); }
  std::vector<Slot> passing() const override { return passing_; }
  int64_t scratch_bytes() const override { return slots_ * slot_bytes_; }
  int64_t workspace_bytes() const override { return 0; }
  std::string Describe(size_t segment) const override;
  // The time of all is split as the segments took it.
  absl::Status Run(const JoinRun& run) const override;

 private:
  struct Step {
    std::unique_ptr<Kernel> kernel;
    BlockWalk walk;
    std::vector<BlockPlan::Place> operands;
    std::vector<BlockPlan::Place> results;
  };

  BlockedSegments() = default;
  void RunStep(const Step& step, int64_t block, const JoinRun& run, char* memory) const;

  std::vector<Step> steps_;
  std::vector<Slot> passing_;
  int64_t num_blocks_ = 0;
  int64_t passing_bytes_ = 0;
  // The offsets in a slot of the values that pass between kernels, their scratch and their workspace.
  int64_t scratch_offset_ = 0;
  int64_t workspace_offset_ = 0;
  int64_t slot_bytes_ = 0;
  int64_t slots_ = 1;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_BLOCKED_SEGMENTS_H_
