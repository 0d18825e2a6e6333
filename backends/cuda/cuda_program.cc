#include "backends/cuda/cuda_program.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/kernel_table.h"
#include "engine/base/refusal.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kVerdictBytes = sizeof(uint64_t);

absl::string_view WrittenName(const SegmentInstruction& segment) {
  return segment.written == nullptr ? segment.bound.op->name : segment.written->name;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaProgram>> CudaProgram::Create(absl::Span<const SegmentInstruction> segments,
                                                                 const KernelContext& context) {
  return CreateOf(segments, [&](const BoundInstruction& instruction) { return MakeKernelOf(instruction, context); });
}

absl::StatusOr<std::unique_ptr<CudaProgram>> CudaProgram::CreateOf(absl::Span<const SegmentInstruction> segments,
                                                                   Maker make) {
  auto program = std::make_unique<CudaProgram>();
  for (const SegmentInstruction& segment : segments) {
    RETURN_IF_ERROR(CheckStopped());
    const absl::Status appended = program->Append(segment, make);
    if (!appended.ok()) return WithNode(appended, std::string(segment.node), WrittenName(segment));
  }
  return program;
}

absl::Status CudaProgram::Append(const SegmentInstruction& segment, Maker make) {
  Step step;
  ASSIGN_OR_RETURN(step.kernel, make(segment.bound));
  step.operands.assign(segment.operands.begin(), segment.operands.end());
  step.results.assign(segment.results.begin(), segment.results.end());
  if (step.kernel->judges()) {
    step.verdict = static_cast<int64_t>(judges_.size());
    judges_.push_back({steps_.size(), std::string(segment.node), std::string(WrittenName(segment))});
  }
  verdicts_offset_bytes_ =
      std::max(verdicts_offset_bytes_, CeilDiv(step.kernel->workspace_bytes(), kVerdictBytes) * kVerdictBytes);
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status CudaProgram::Enqueue(size_t position, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                                  CuAddress workspace, Lane* lane) const {
  const Step& step = steps_[position];
  const auto address = [&](Slot slot) { return reinterpret_cast<CuAddress>(slots[static_cast<size_t>(slot)]); };
  absl::InlinedVector<CuAddress, 8> operands, results;
  for (const Slot slot : step.operands) operands.push_back(address(slot));
  for (const Slot slot : step.results) results.push_back(address(slot));
  Launch launch{.operands = operands, .results = results, .workspace = workspace, .handles = &lane->handles()};
  if (!scratch.empty()) launch.scratch = reinterpret_cast<CuAddress>(scratch[position]);
  if (step.verdict >= 0) {
    launch.verdict = workspace + static_cast<CuAddress>(verdicts_offset_bytes_ + step.verdict * kVerdictBytes);
  }
  return lane->Enqueue([&](CuStream stream) {
    launch.stream = stream;
    return step.kernel->Enqueue(launch);
  });
}

absl::Status CudaProgram::Judge(absl::Span<const uint64_t> verdicts) const {
  for (size_t i = 0; i < judges_.size(); ++i) {
    if (verdicts[i] == kNoVerdict) continue;
    const absl::Status refused = steps_[judges_[i].position].kernel->Refused(VerdictOf(verdicts[i]));
    if (!refused.ok()) return WithNode(refused, judges_[i].node, judges_[i].op);
  }
  return absl::OkStatus();
}

int64_t CudaProgram::workspace_bytes() const {
  return verdicts_offset_bytes_ + static_cast<int64_t>(judges_.size()) * kVerdictBytes;
}

}  // namespace tensord::cuda
