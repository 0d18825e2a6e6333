#include "backends/cpu/joins/lone_kernel.h"

#include <chrono>

#include "absl/base/optimization.h"
#include "engine/base/refusal.h"

namespace tensord::cpu {

LoneKernel::LoneKernel(std::unique_ptr<const Kernel> kernel, const SegmentInstruction& segment)
    : kernel_(std::move(kernel)),
      operands_(segment.operands.begin(), segment.operands.end()),
      results_(segment.results.begin(), segment.results.end()),
      node_(segment.bound.op->op_class == OpClass::kExtension ? segment.node : ""),
      written_(segment.written) {}

absl::StatusOr<std::unique_ptr<const LoneKernel>> LoneKernel::Make(const SegmentInstruction& segment,
                                                                   const JoinContext& context) {
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = context.make(segment.bound, segment.num_readers);
  if (!kernel.ok()) return WithNode(kernel.status(), segment.node, segment.written->name);
  return std::unique_ptr<const LoneKernel>(new LoneKernel(*std::move(kernel), segment));
}

absl::Status LoneKernel::Run(const JoinRun& run) const {
  absl::InlinedVector<const void*, 8> operands;
  absl::InlinedVector<void*, 4> results;
  for (const Slot slot : operands_) operands.push_back(run.At(slot));
  for (const Slot slot : results_) results.push_back(run.At(slot));
  absl::Status failure;
  if (!run.times.empty()) run.times[0].start = std::chrono::steady_clock::now();
  kernel_->Run({.operands = operands,
                .results = absl::MakeSpan(results),
                .scratch = run.scratch,
                .pool = &run.pool,
                .failure = &failure,
                .workspace = run.workspace});
  if (!run.times.empty()) run.times[0].end = std::chrono::steady_clock::now();
  if (ABSL_PREDICT_FALSE(!failure.ok())) return WithNode(failure, node_, written_->name);
  return failure;
}

}  // namespace tensord::cpu
