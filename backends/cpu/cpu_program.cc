#include "backends/cpu/cpu_program.h"

#include <algorithm>
#include <utility>

#include "absl/base/optimization.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/base/thread_niceness.h"

namespace tensord::cpu {
namespace {

// Returns the bytes of a segment's operands and results.
int64_t BytesOf(const BoundInstruction& bound) {
  constexpr int64_t kMost = 1 << 30;  // of a tensor
  int64_t bytes = 0;
  for (const ConcreteType& operand : bound.operands) bytes += std::min(operand.num_bytes(), kMost);
  for (const ConcreteType& result : bound.results) bytes += std::min(result.num_bytes(), kMost);
  return bytes;
}

}  // namespace

void CpuProgram::Append(Joiner::Joined joined, absl::Span<const SegmentInstruction> segments) {
  Step step{.join = std::move(joined.join), .way = joined.way};
  if (!steps_.empty()) step.begin = steps_.back().begin + steps_.back().join->num_segments();
  const size_t count = step.join->num_segments();
  step.checks = count > 1 || unchecked_bytes_ >= kBytesBetweenChecks;
  if (step.checks) unchecked_bytes_ = 0;
  if (count > 1) {
    const size_t end = step.begin + count;
    chains_.push_back(
        {.begin = step.begin, .end = end, .unplaced = step.join->passing(), .way = JoinWays()[step.way].name});
    unchecked_bytes_ = kBytesBetweenChecks;
  } else {
    const int64_t bytes = std::min(BytesOf(segments[0].bound), kBytesBetweenChecks);
    unchecked_bytes_ = std::min(kBytesBetweenChecks, unchecked_bytes_ + bytes);
  }
  workspace_bytes_ = std::max(workspace_bytes_, step.join->workspace_bytes());
  steps_.push_back(std::move(step));
}

const CpuProgram::Step& CpuProgram::StepOf(size_t position) const {
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), position,
                                      [](size_t segment, const Step& step) { return segment < step.begin; });
  return *(after - 1);
}

int64_t CpuProgram::scratch_bytes(size_t position) const {
  const Step& step = StepOf(position);
  return step.begin == position ? step.join->scratch_bytes() : 0;
}

std::string CpuProgram::DescribeKernel(size_t position) const {
  const Step& step = StepOf(position);
  return step.join->Describe(position - step.begin);
}

std::vector<JoinCount> CpuProgram::joins() const {
  std::vector<JoinCount> joins;
  for (size_t way = 0; way < kNumJoinWays; ++way) {
    joins.push_back({.way = JoinWays()[way].name, .is_left_out = left_out_.test(way)});
  }
  for (const Step& step : steps_) joins[step.way].segments += static_cast<int64_t>(step.join->num_segments());
  return joins;
}

absl::Status CpuSession::Run(const PreparedSession& prepared, absl::Span<void* const> slots,
                             absl::Span<void* const> scratch, absl::Span<SegmentTime> times) {
  const CpuProgram& program = static_cast<const CpuProgram&>(prepared);
  if (program.workspace_bytes() > 0) {
    ASSIGN_OR_RETURN(workspace_, memory_.Allocate(program.workspace_bytes()));
  }
  const ThreadPool::Series series(&pool_);
  StopSignal stop(check(), ask_every_);
  const StopSignal::Scope scope(&stop);
  JoinRun run{.slots = slots, .workspace = workspace_ == nullptr ? nullptr : workspace_->address(), .pool = pool_};
  for (const CpuProgram::Step& step : program.steps()) {
    GiveWay();
    if (step.checks) RETURN_IF_ERROR(stop.Ask());
    run.scratch = scratch.empty() ? nullptr : scratch[step.begin];
    if (!times.empty()) run.times = times.subspan(step.begin, step.join->num_segments());
    const absl::Status status = step.join->Run(run);
    if (ABSL_PREDICT_FALSE(stop.is_set())) return stop.status();
    if (ABSL_PREDICT_FALSE(!status.ok())) return status;
  }
  return absl::OkStatus();
}

absl::Status CpuSession::Finish() {
  workspace_.reset();
  return absl::OkStatus();
}

}  // namespace tensord::cpu
