#include "backends/cpu/joins/shared_reductions.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/fused/kernel.h"
#include "backends/cpu/joins/split_reduction.h"
#include "backends/cpu/machine/task_slots.h"
#include "backends/cpu/machine/thread_pool.h"
#include "backends/cpu/reduce/kernels.h"
#include "engine/base/rounding.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kSlabPart = 2;        // of the second-level cache, at most
constexpr int64_t kLeastSlabPart = 16;  // in smaller ones calls cost more than memory would
// A part of a result has at most 1 / kPartOfSlab of a slab's bytes, and a segment's results at most 1 / kResultsPart of
// the shared tensor's: the other reads and writes are to be little.
constexpr int64_t kPartOfSlab = 16;
constexpr int64_t kResultsPart = 4;

bool Reduces(const BoundInstruction& bound) {
  return bound.micro != nullptr ? bound.micro->has_reduced_axes() : Is(*bound.op, CoreOp::kReduce);
}

// Returns the position of the slot among the operands; nothing if it is none of them.
std::optional<size_t> OperandAt(const SegmentInstruction& segment, Slot slot) {
  const auto it = std::find(segment.operands.begin(), segment.operands.end(), slot);
  if (it == segment.operands.end()) return std::nullopt;
  return static_cast<size_t>(it - segment.operands.begin());
}

// Returns how many of the first segments are reductions of that tensor to a much smaller one, without reading each
// other's results.
size_t CountReaders(absl::Span<const SegmentInstruction> segments, Slot slot, int64_t bytes) {
  absl::InlinedVector<Slot, 8> written;
  for (size_t s = 0; s < segments.size(); ++s) {
    const SegmentInstruction& segment = segments[s];
    if (!Reduces(segment.bound) || !OperandAt(segment, slot).has_value()) return s;
    int64_t results = 0;
    for (const ConcreteType& result : segment.bound.results) results += result.num_bytes();
    const auto is_written = [&](Slot read) { return std::find(written.begin(), written.end(), read) != written.end(); };
    const bool depends = std::any_of(segment.operands.begin(), segment.operands.end(), is_written) ||
                         std::any_of(segment.memory.begin(), segment.memory.end(), is_written);
    if (depends || results > bytes / kResultsPart) return s;
    written.insert(written.end(), segment.results.begin(), segment.results.end());
  }
  return segments.size();
}

// A segment, cut into slabs of the tensor that it shares with others.
class SlabSegment {
 public:
  SlabSegment(const SegmentInstruction& segment, Slot shared, int64_t slabs) : bound_(segment.bound) {
    blocks_ = SegmentBlocks::CutReduction(bound_, slabs);
    if (bound_.micro != nullptr && (!blocks_.has_value() || blocks_->reduces_parts())) SplitAndCut(slabs);
    const size_t operand = *OperandAt(segment, shared);
    if (!blocks_.has_value()) return;
    if (!blocks_->ReadsPiece(operand) || !HasSmallParts(bound_.operands[operand].num_bytes() / slabs)) blocks_.reset();
  }
  SlabSegment(const SlabSegment&) = delete;
  SlabSegment& operator=(const SlabSegment&) = delete;

  bool is_cut() const { return blocks_.has_value(); }
  const SegmentBlocks& blocks() const { return *blocks_; }
  // Returns the instruction of the blocks' kernel.
  const BoundInstruction& bound() const { return bound_; }
  // Returns the kinds by result of that, if it reduces parts.
  std::vector<ReduceKind> kinds() const {
    if (split_.has_value()) return split_->kinds;
    return {static_cast<ReduceKind>(bound_.attrs->Int("kind"))};
  }
  // Returns null if the results are the reductions.
  const MicroProgram* rest() const { return split_.has_value() && split_->rest.has_value() ? &*split_->rest : nullptr; }

 private:
  void SplitAndCut(int64_t slabs) {
    blocks_.reset();
    split_ = Split(*bound_.micro);
    if (!split_.has_value()) return;
    bound_.micro = &split_->reductions;
    Shape kept;
    for (const MicroAxis& axis : bound_.micro->axes) {
      if (!axis.is_reduced) kept.push_back(axis.size);
    }
    bound_.results.clear();
    for (const MicroResult& result : bound_.micro->results) {
      bound_.results.push_back(
          {.dtype = bound_.micro->instructions[static_cast<size_t>(result.value)].dtype, .shape = kept});
    }
    blocks_ = SegmentBlocks::CutReduction(bound_, slabs);
  }

  // Parts of 16-bit floats would be rounded once more.
  bool HasSmallParts(int64_t slab_bytes) const {
    return !blocks_->reduces_parts() ||
           std::all_of(bound_.results.begin(), bound_.results.end(), [&](const ConcreteType& part) {
             return !kHalves.Contains(part.dtype) && part.num_bytes() <= slab_bytes / kPartOfSlab;
           });
  }

  BoundInstruction bound_;
  std::optional<SplitReduction> split_;
  std::optional<SegmentBlocks> blocks_;
};

// Returns for each segment, up to the last one that can be cut into so many slabs, whether it can.
std::vector<bool> FindCut(absl::Span<const SegmentInstruction> segments, Slot shared, int64_t slabs) {
  std::vector<bool> cut;
  for (const SegmentInstruction& segment : segments) {
    cut.push_back(SlabSegment(segment, shared, slabs).is_cut());
    if (!cut[0]) return {};
  }
  while (!cut.empty() && !cut.back()) cut.pop_back();
  return cut;
}

}  // namespace

std::unique_ptr<const SharedReductions> SharedReductions::Plan(absl::Span<const SegmentInstruction> segments,
                                                               const JoinContext& context) {
  const ChainLimits& limits = context.limits;
  if (limits.block_bytes <= 0 || segments.size() < 2 || !Reduces(segments[0].bound)) return nullptr;
  const auto& operands = segments[0].bound.operands;
  if (operands.empty()) return nullptr;
  const auto largest = std::max_element(operands.begin(), operands.end(),
                                        [](const auto& a, const auto& b) { return a.num_bytes() < b.num_bytes(); });
  const int64_t bytes = largest->num_bytes();
  if (bytes < limits.least_read_bytes) return nullptr;
  const Slot shared = segments[0].operands[static_cast<size_t>(largest - operands.begin())];
  segments = segments.first(CountReaders(segments, shared, bytes));

  std::vector<bool> best;
  int64_t slabs = 1;
  const int64_t most = bytes / std::max<int64_t>(1, limits.block_bytes / kLeastSlabPart);
  for (const int64_t some : BlockCounts(*largest, segments.size() < 2 ? 0 : most)) {
    if (bytes / some > limits.block_bytes / kSlabPart) continue;
    std::vector<bool> cut = FindCut(segments, shared, some);
    if (std::count(cut.begin(), cut.end(), true) <= std::max<int64_t>(1, std::count(best.begin(), best.end(), true)))
      continue;
    best = std::move(cut);
    slabs = some;
  }
  if (best.empty()) return nullptr;
  std::unique_ptr<SharedReductions> made(new SharedReductions);
  made->num_slabs_ = slabs;
  made->slab_bytes_ = bytes / slabs;
  for (size_t s = 0; s < best.size(); ++s) {
    if (!(best[s] ? made->AddSlabs(segments[s], shared, context) : made->AddWhole(segments[s], context)))
      return nullptr;
  }
  made->Place(context.threads);
  return made;
}

bool SharedReductions::AddSlabs(const SegmentInstruction& segment, Slot shared, const JoinContext& context) {
  const SlabSegment cut(segment, shared, num_slabs_);
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = cut.blocks().MakeKernel(context);
  if (!kernel.ok()) return false;
  Step step{.kernel = *std::move(kernel),
            .walk = cut.blocks().walk(),
            .operands = {segment.operands.begin(), segment.operands.end()},
            .results = {segment.results.begin(), segment.results.end()}};
  if (cut.blocks().reduces_parts()) {
    AddParts(cut.bound(), cut.kinds(), cut.rest() != nullptr, &step);
    if (cut.rest() != nullptr && !AddRest(segment.bound, cut.bound(), *cut.rest(), context.jit, &step.rest))
      return false;
  }
  steps_.push_back(std::move(step));
  return true;
}

bool SharedReductions::AddWhole(const SegmentInstruction& segment, const JoinContext& context) {
  const BoundInstruction& bound = segment.bound;
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = context(bound);
  if (!kernel.ok()) return false;
  steps_.push_back({.rest = *std::move(kernel),
                    .operands = {segment.operands.begin(), segment.operands.end()},
                    .results = {segment.results.begin(), segment.results.end()}});
  return true;
}

// The kernel that computes the results of the whole from reductions.
bool SharedReductions::AddRest(const BoundInstruction& whole, const BoundInstruction& reductions,
                               const MicroProgram& rest, const JitOptions& jit, std::unique_ptr<const Kernel>* kernel) {
  BoundInstruction bound = whole;
  bound.micro = &rest;
  bound.operands.insert(bound.operands.end(), reductions.results.begin(), reductions.results.end());
  absl::StatusOr<std::unique_ptr<Kernel>> made = MakeFusedKernel(bound, jit);
  if (made.ok()) *kernel = *std::move(made);
  return made.ok();
}

void SharedReductions::AddParts(const BoundInstruction& reductions, absl::Span<const ReduceKind> kinds, bool has_rest,
                                Step* step) {
  for (size_t r = 0; r < kinds.size(); ++r) {
    const ConcreteType& type = reductions.results[r];
    Parts parts{.offset = Reserve(num_slabs_ * type.num_bytes()),
                .reduction = Reduction(*ReduceOpOf(kinds[r]), type.dtype, {type.num_elements(), num_slabs_}, {1})};
    if (has_rest) parts.total_offset = Reserve(type.num_bytes());
    step->parts.push_back(std::move(parts));
  }
}

int64_t SharedReductions::Reserve(int64_t bytes) {
  return std::exchange(join_offset_, join_offset_ + RoundUp(bytes, 64));
}

void SharedReductions::Place(int threads) {
  int64_t join = 0, scratch = 0, workspace = 0;
  for (const Step& step : steps_) {
    if (step.kernel != nullptr) {
      scratch = std::max(scratch, step.kernel->scratch_bytes());
      workspace = std::max(workspace, step.kernel->workspace_bytes());
    }
    for (const Parts& parts : step.parts) join = std::max(join, parts.reduction.scratch_bytes());
    if (step.rest == nullptr) continue;
    join = std::max(join, step.rest->scratch_bytes());
    workspace_bytes_ = std::max(workspace_bytes_, step.rest->workspace_bytes());
  }
  tasks_offset_ = join_offset_ + RoundUp(join, 64);
  task_workspace_offset_ = RoundUp(scratch, 64);
  task_bytes_ = task_workspace_offset_ + RoundUp(workspace, 64);
  task_slots_ = std::clamp<int64_t>(threads, 1, num_slabs_);
  scratch_bytes_ = tasks_offset_ + task_slots_ * task_bytes_;
}

std::string SharedReductions::Describe(size_t segment) const {
  const Step& step = steps_[segment];
  if (step.kernel == nullptr) return step.rest->Describe();
  const std::string kernel = step.kernel->Describe();
  const int64_t others =
      std::count_if(steps_.begin(), steps_.end(), [](const Step& other) { return other.kernel != nullptr; }) - 1;
  return absl::StrCat(kernel, kernel.empty() ? "" : ", ", num_slabs_, " slabs of ", slab_bytes_, " bytes, which ",
                      others, others == 1 ? " other segment reads" : " other segments read");
}

void SharedReductions::RunSlab(int64_t slab, const Step& step, const JoinRun& run, char* own) const {
  const size_t num_results = step.parts.empty() ? step.results.size() : step.parts.size();
  absl::InlinedVector<int64_t, 8> offsets(step.operands.size() + num_results);
  absl::InlinedVector<int64_t, 8> origin(step.walk.num_axes());
  step.walk.Locate(slab, absl::MakeSpan(offsets), absl::MakeSpan(origin));
  const auto at = [&](Slot slot) { return static_cast<char*>(run.At(slot)); };
  char* const scratch = static_cast<char*>(run.scratch);
  absl::InlinedVector<const void*, 4> operands;
  absl::InlinedVector<void*, 4> results;
  for (size_t k = 0; k < step.operands.size(); ++k) operands.push_back(at(step.operands[k]) + offsets[k]);
  for (size_t r = 0; r < num_results; ++r) {
    char* const whole = step.parts.empty() ? at(step.results[r]) : scratch + step.parts[r].offset;
    results.push_back(whole + offsets[step.operands.size() + r]);
  }
  step.kernel->Run({.operands = operands,
                    .results = results,
                    .scratch = own,
                    .pool = &run.pool,
                    .workspace = own + task_workspace_offset_,
                    .origin = origin});
}

void SharedReductions::Finish(const Step& step, const JoinRun& run) const {
  char* const scratch = static_cast<char*>(run.scratch);
  absl::InlinedVector<const void*, 8> operands;
  absl::InlinedVector<void*, 4> results;
  for (const Slot slot : step.operands) operands.push_back(run.At(slot));
  for (const Slot slot : step.results) results.push_back(run.At(slot));
  for (size_t r = 0; r < step.parts.size(); ++r) {
    const Parts& parts = step.parts[r];
    void* const total = step.rest == nullptr ? results[r] : scratch + parts.total_offset;
    parts.reduction.Run(scratch + parts.offset, total, scratch + join_offset_, run.pool);
    operands.push_back(total);
  }
  if (step.rest == nullptr) return;
  step.rest->Run({.operands = operands,
                  .results = results,
                  .scratch = scratch + join_offset_,
                  .pool = &run.pool,
                  .workspace = run.workspace});
}

absl::Status SharedReductions::Run(const JoinRun& run) const {
  const absl::Span<SegmentTime> times = run.times;
  const Clock::time_point start = times.empty() ? Clock::time_point() : Clock::now();
  char* const memory = static_cast<char*>(run.scratch);
  const bool is_whole = RunInSlots(num_slabs_, task_slots_, run.pool, [&](int64_t slab, int64_t slot) {
    for (const Step& step : steps_) {
      if (step.kernel == nullptr) continue;
      RunSlab(slab, step, run, memory + tasks_offset_ + slot * task_bytes_);
    }
  });
  for (size_t s = 0; s < steps_.size() && is_whole; ++s) Finish(steps_[s], run);
  if (times.empty()) return absl::OkStatus();
  const Clock::duration each = (Clock::now() - start) / static_cast<int64_t>(times.size());
  for (size_t s = 0; s < times.size(); ++s) {
    times[s] = {.start = start + each * static_cast<int64_t>(s), .end = start + each * static_cast<int64_t>(s + 1)};
  }
  return absl::OkStatus();
}

}  // namespace tensord::cpu
