#ifndef TENSORD_BACKENDS_CPU_JOINS_SHARED_REDUCTIONS_H_
#define TENSORD_BACKENDS_CPU_JOINS_SHARED_REDUCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "backends/cpu/jit/options.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/join.h"
#include "backends/cpu/joins/segment_blocks.h"
#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/reduce/reduce.h"

namespace tensord::cpu {

// Reductions that follow each other and read one tensor, over any axes, slab by slab of it: a slab comes from memory
// once and lies in the second-level cache while each of them goes over it. A reduction that keeps the axis of the slabs
// writes its piece of the result. If it reduces that axis, each slab leaves a part, and the parts are reduced when all
// are there. Segments between that cannot be cut into slabs run by themselves afterwards. The number of slabs follows
// from sizes alone.
class SharedReductions final : public Join {
 public:
  // Plans the first of these segments; null if they do not run like that.
  static std::unique_ptr<const SharedReductions> Plan(absl::Span<const SegmentInstruction> segments,
                                                      const JoinContext& context);

  size_t num_segments() const override { return steps_.size(); }
  std::vector<Slot> passing() const override { return {}; }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  std::string Describe(size_t segment) const override;
  // The time is split evenly.
  absl::Status Run(const JoinRun& run) const override;

 private:
  // Parts of one reduction, one a slab, and their reduction.
  struct Parts {
    int64_t offset = 0;  // in the scratch
    Reduction reduction;
    int64_t total_offset = 0;  // in the scratch; where there is no rest it is a result
  };
  struct Step {
    std::unique_ptr<const Kernel> kernel;  // of a slab; null where the segment runs by itself
    BlockWalk walk;
    // Makes the results from the operands and the reductions; null if slabs or reductions give these.
    std::unique_ptr<const Kernel> rest;
    std::vector<Slot> operands;
    std::vector<Slot> results;
    std::vector<Parts> parts;  // empty where slabs have pieces of the results
  };

  SharedReductions() = default;
  bool AddSlabs(const SegmentInstruction& segment, Slot shared, const JoinContext& context);
  bool AddWhole(const SegmentInstruction& segment, const JoinContext& context);
  static bool AddRest(const BoundInstruction& whole, const BoundInstruction& reductions, const MicroProgram& rest,
                      const JitOptions& jit, std::unique_ptr<const Kernel>* kernel);
  void AddParts(const BoundInstruction& reductions, absl::Span<const ReduceKind> kinds, bool has_rest, Step* step);
  int64_t Reserve(int64_t bytes);
  void Place(int threads);
  void RunSlab(int64_t slab, const Step& step, const JoinRun& run, char* own) const;
  void Finish(const Step& step, const JoinRun& run) const;

  std::vector<Step> steps_;
  int64_t num_slabs_ = 1;
  int64_t slab_bytes_ = 0;
  // The scratch has parts and totals, then the memory to join them, then memory of the tasks.
  int64_t join_offset_ = 0;
  int64_t tasks_offset_ = 0;
  int64_t task_workspace_offset_ = 0;
  int64_t task_bytes_ = 0;
  int64_t task_slots_ = 1;
  int64_t scratch_bytes_ = 0;
  int64_t workspace_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_SHARED_REDUCTIONS_H_
