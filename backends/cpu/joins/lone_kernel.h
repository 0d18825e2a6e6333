#ifndef TENSORD_BACKENDS_CPU_JOINS_LONE_KERNEL_H_
#define TENSORD_BACKENDS_CPU_JOINS_LONE_KERNEL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/join.h"
#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// A segment that runs by itself.
class LoneKernel final : public Join {
 public:
  // Makes the kernel. Refuses as its factory does, naming the node.
  static absl::StatusOr<std::unique_ptr<const LoneKernel>> Make(const SegmentInstruction& segment,
                                                                const JoinContext& context);

  size_t num_segments() const override { return 1; }
  std::vector<Slot> passing() const override { return {}; }
  int64_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  std::string Describe(size_t /*segment*/) const override { return kernel_->Describe(); }
  absl::Status Run(const JoinRun& run) const override;

 private:
  LoneKernel(std::unique_ptr<const Kernel> kernel, const SegmentInstruction& segment);

  const std::unique_ptr<const Kernel> kernel_;
  const absl::InlinedVector<Slot, 3> operands_;
  const absl::InlinedVector<Slot, 1> results_;
  const std::string node_;      // of an extension, which may fail
  const OpDef* const written_;  // by the client there
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_LONE_KERNEL_H_
