#include "backends/cpu/joins/blocked_segments.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/task_slots.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Nanoseconds of each step, of all threads together.
using StepTimes = absl::InlinedVector<std::atomic<int64_t>, 4>;

void SplitTime(Clock::time_point start, Clock::time_point end, const StepTimes& taken, absl::Span<SegmentTime> times) {
  double all = 0, before = 0;
  for (const std::atomic<int64_t>& step : taken) all += static_cast<double>(step.load(std::memory_order_relaxed));
  for (size_t i = 0; i < times.size(); ++i) {
    times[i].start = i == 0 ? start : times[i - 1].end;
    before += static_cast<double>(taken[i].load(std::memory_order_relaxed));
    const double share = all > 0 ? before / all : 1;
    times[i].end = start + std::chrono::duration_cast<Clock::duration>((end - start) * share);
  }
  times.back().end = end;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const BlockedSegments>> BlockedSegments::Create(const BlockPlan& plan,
                                                                               const JoinContext& context) {
  std::unique_ptr<BlockedSegments> made(new BlockedSegments);
  int64_t scratch = 0, workspace = 0;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const BlockPlan::Segment& segment = plan.segments[s];
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, segment.blocks.MakeKernel(context));
    scratch = std::max(scratch, kernel->scratch_bytes());
    workspace = std::max(workspace, kernel->workspace_bytes());
    made->steps_.push_back({.kernel = std::move(kernel),
                            .walk = segment.blocks.walk(),
                            .operands = segment.operands,
                            .results = segment.results});
  }
  made->passing_ = plan.passing;
  made->num_blocks_ = plan.num_blocks;
  made->passing_bytes_ = plan.passing_bytes;
  made->scratch_offset_ = RoundUp(plan.passing_bytes, 64);
  made->workspace_offset_ = made->scratch_offset_ + RoundUp(scratch, 64);
  made->slot_bytes_ = made->workspace_offset_ + RoundUp(workspace, 64);
  made->slots_ = std::clamp<int64_t>(context.threads, 1, plan.num_blocks);
  return made;
}

std::string BlockedSegments::Describe(size_t segment) const {
  const std::string kernel = steps_[segment].kernel->Describe();
  const size_t others = steps_.size() - 1;
  return absl::StrCat(kernel, kernel.empty() ? "" : ", ", num_blocks_, " blocks together with ", others,
                      others == 1 ? " other segment, " : " other segments, ", passing_bytes_, " bytes in between");
}

void BlockedSegments::RunStep(const Step& step, int64_t block, const JoinRun& run, char* memory) const {
  const size_t num_operands = step.operands.size(), num_results = step.results.size();
  absl::InlinedVector<void*, 16> addresses;
  absl::InlinedVector<int64_t, 16> offsets(num_operands + num_results);
  absl::InlinedVector<int64_t, 8> origin(step.walk.num_axes());
  step.walk.Locate(block, absl::MakeSpan(offsets), absl::MakeSpan(origin));
  for (const auto* places : {&step.operands, &step.results}) {
    for (const BlockPlan::Place& place : *places) {
      addresses.push_back(place.passes ? memory + place.offset
                                       : static_cast<char*>(run.At(place.slot)) + offsets[addresses.size()]);
    }
  }
  step.kernel->Run({.operands = {addresses.data(), num_operands},
                    .results = {addresses.data() + num_operands, num_results},
                    .scratch = memory + scratch_offset_,
                    .pool = &run.pool,
                    .workspace = memory + workspace_offset_,
                    .origin = origin});
}

absl::Status BlockedSegments::Run(const JoinRun& run) const {
  const bool is_timed = !run.times.empty();
  const auto now = [&] { return is_timed ? Clock::now() : Clock::time_point(); };
  const Clock::time_point start = now();
  StepTimes taken(run.times.size());
  RunInSlots(num_blocks_, slots_, run.pool, [&](int64_t block, int64_t slot) {
    char* const memory = static_cast<char*>(run.scratch) + slot * slot_bytes_;
    Clock::time_point begin = now();
    for (size_t s = 0; s < steps_.size() && !StopRequested(); ++s) {
      RunStep(steps_[s], block, run, memory);
      if (!is_timed) continue;
      const Clock::time_point end = now();
      taken[s].fetch_add(std::chrono::nanoseconds(end - begin).count(), std::memory_order_relaxed);
      begin = end;
    }
  });
  if (is_timed) SplitTime(start, now(), taken, run.times);
  return absl::OkStatus();
}

}  // namespace tensord::cpu
