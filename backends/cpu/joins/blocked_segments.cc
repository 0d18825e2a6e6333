#include "backends/cpu/joins/blocked_segments.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/thread_pool.h"
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

// Runs blocks on one thread.
class BlockedSegments::Worker {
 public:
  Worker(const BlockedSegments& chain, const JoinRun& run, char* memory)
      : chain_(chain),
        run_(run),
        memory_(memory),
        addresses_(chain.max_tensors_),
        offsets_(chain.max_tensors_),
        origin_(chain.max_axes_) {}

  void RunBlock(int64_t block, StepTimes* times) {
    Clock::time_point now = times != nullptr ? Clock::now() : Clock::time_point();
    for (size_t s = 0; s < chain_.steps_.size() && !StopRequested(); ++s) {
      RunStep(chain_.steps_[s], block);
      if (times == nullptr) continue;
      const Clock::time_point start = std::exchange(now, Clock::now());
      (*times)[s].fetch_add(std::chrono::nanoseconds(now - start).count(), std::memory_order_relaxed);
    }
  }

 private:
  void RunStep(const Step& step, int64_t block) {
    const size_t num_operands = step.operands.size(), num_results = step.results.size();
    const absl::Span<int64_t> origin(origin_.data(), step.walk.num_axes());
    step.walk.Locate(block, {offsets_.data(), num_operands + num_results}, origin);
    for (size_t k = 0; k < num_operands; ++k) addresses_[k] = AddressOf(step.operands[k], offsets_[k]);
    for (size_t r = 0; r < num_results; ++r) {
      addresses_[num_operands + r] = AddressOf(step.results[r], offsets_[num_operands + r]);
    }
    step.kernel->Run({.operands = {addresses_.data(), num_operands},
                      .results = {addresses_.data() + num_operands, num_results},
                      .scratch = memory_ + chain_.scratch_offset_,
                      .pool = &run_.pool,
                      .workspace = memory_ + chain_.workspace_offset_,
                      .origin = origin});
  }

  void* AddressOf(const BlockPlan::Place& place, int64_t offset) const {
    if (place.passes) return memory_ + place.offset;
    return static_cast<char*>(run_.At(place.slot)) + offset;
  }

  const BlockedSegments& chain_;
  const JoinRun& run_;
  char* const memory_;
  absl::InlinedVector<void*, 16> addresses_;
  absl::InlinedVector<int64_t, 16> offsets_;
  absl::InlinedVector<int64_t, 8> origin_;
};

absl::StatusOr<std::unique_ptr<const BlockedSegments>> BlockedSegments::Create(const BlockPlan& plan,
                                                                               const JoinContext& context) {
  std::unique_ptr<BlockedSegments> chain(new BlockedSegments);
  int64_t scratch = 0, workspace = 0;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const BlockPlan::Segment& segment = plan.segments[s];
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, segment.blocks.MakeKernel(context, context.jit));
    scratch = std::max(scratch, kernel->scratch_bytes());
    workspace = std::max(workspace, kernel->workspace_bytes());
    chain->max_tensors_ = std::max(chain->max_tensors_, segment.operands.size() + segment.results.size());
    chain->max_axes_ = std::max(chain->max_axes_, segment.blocks.walk().num_axes());
    chain->steps_.push_back({.kernel = std::move(kernel),
                             .walk = segment.blocks.walk(),
                             .operands = segment.operands,
                             .results = segment.results});
  }
  chain->passing_ = plan.passing;
  chain->num_blocks_ = plan.num_blocks;
  chain->passing_bytes_ = plan.passing_bytes;
  chain->scratch_offset_ = RoundUp(plan.passing_bytes, 64);
  chain->workspace_offset_ = chain->scratch_offset_ + RoundUp(scratch, 64);
  chain->slot_bytes_ = chain->workspace_offset_ + RoundUp(workspace, 64);
  chain->slots_ = std::clamp<int64_t>(context.threads, 1, plan.num_blocks);
  return chain;
}

std::string BlockedSegments::Describe(size_t segment) const {
  const std::string kernel = steps_[segment].kernel->Describe();
  const size_t others = steps_.size() - 1;
  return absl::StrCat(kernel, kernel.empty() ? "" : ", ", num_blocks_, " blocks together with ", others,
                      others == 1 ? " other segment, " : " other segments, ", passing_bytes_, " bytes in between");
}

absl::Status BlockedSegments::Run(const JoinRun& run) const {
  const Clock::time_point start = run.times.empty() ? Clock::time_point() : Clock::now();
  StepTimes taken(run.times.size());
  std::atomic<int64_t> next{0};
  run.pool.ParallelFor(slots_, [&](int64_t slot) {
    Worker worker(*this, run, static_cast<char*>(run.scratch) + slot * slot_bytes_);
    while (true) {
      const int64_t block = next.fetch_add(1, std::memory_order_relaxed);
      if (block >= num_blocks_ || StopRequested()) return;
      worker.RunBlock(block, run.times.empty() ? nullptr : &taken);
    }
  });
  if (!run.times.empty()) SplitTime(start, Clock::now(), taken, run.times);
  return absl::OkStatus();
}

}  // namespace tensord::cpu
