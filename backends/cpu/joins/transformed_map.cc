#include "backends/cpu/joins/transformed_map.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/fft/kernels.h"
#include "backends/cpu/fft/line_step.h"
#include "backends/cpu/joins/block_plan.h"
#include "engine/base/status_macros.h"
#include "engine/families/fft/fft_steps.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

using Clock = std::chrono::steady_clock;
using Axes = std::vector<int64_t>;

// The lines of a block: fewer are not worth a vector, more leave no room for their transforms beside them.
constexpr int64_t kFewestLines = 4;
constexpr int64_t kLinesPart = 2;  // of the second-level cache
constexpr int64_t kEvenLines = 8;  // of which there are whole vectors

bool Contains(const Axes& axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
}

// Tells whether it may go along its axes in any order.
bool IsFree(const BoundInstruction& transform) {
  if (!KeepsSizes(transform)) return false;
  Axes sorted = transform.attrs->Ints("axes");
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

std::optional<size_t> SlowestCommonAxis(const BoundInstruction& a, const BoundInstruction& b) {
  for (size_t d = a.results[0].shape.size(); d-- > 0;) {
    if (a.results[0].shape[d] > 1 && Contains(a.attrs->Ints("axes"), d) && Contains(b.attrs->Ints("axes"), d)) return d;
  }
  return std::nullopt;
}

// Returns the transform along that one of its axes, or along all the others.
Attributes Along(const Attributes& attrs, size_t axis, bool others) {
  const Axes &axes = attrs.Ints("axes"), &lengths = attrs.Ints("lengths");
  Axes some, some_lengths;
  for (size_t i = 0; i < axes.size(); ++i) {
    if ((axes[i] == static_cast<int64_t>(axis)) == others) continue;
    some.push_back(axes[i]);
    if (!lengths.empty()) some_lengths.push_back(lengths[i]);
  }
  Attributes part = attrs;
  part.Set("axes", std::move(some)).Set("lengths", std::move(some_lengths));
  return part;
}

// Returns the largest divisor of an axis up to `most`, one of whole vectors before others; 0 if that is too few.
int64_t LinesUpTo(int64_t size, int64_t most) {
  int64_t best = 0;
  for (int64_t lines = std::min(size, most); lines >= kFewestLines; --lines) {
    if (size % lines != 0) continue;
    if (lines % kEvenLines == 0) return lines;
    best = std::max(best, lines);
  }
  return best;
}

// Returns cuts into blocks of lines along the axis that lie beside each other. Nothing if no elements lie side by side
// across the axis, or if too few lines would fit into so many bytes. There is no other cut to choose from: lines stay
// whole, and as many as fit are read in the longest runs.
std::vector<AxisCut> LineCuts(const ConcreteType& type, size_t axis, int64_t most_bytes) {
  std::vector<AxisCut> cuts;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    if (d == axis || type.shape[d] == 1) continue;
    int64_t lines = 1;
    if (cuts.empty())
      lines = d < axis ? LinesUpTo(type.shape[d], most_bytes / (type.shape[axis] * SizeOf(type.dtype))) : 0;
    if (lines == 0) return {};
    cuts.push_back({.axis = d, .parts = type.shape[d] / lines});
  }
  return cuts;
}

// Tells whether one operand is the value, as a tensor of that type.
bool ReadsOnce(const SegmentInstruction& map, Slot value, const ConcreteType& type) {
  int reads = 0;
  for (size_t k = 0; k < map.operands.size(); ++k) {
    if (map.operands[k] != value) continue;
    if (!(map.bound.operands[k] == type)) return false;
    ++reads;
  }
  return reads == 1;
}

// Returns the axis along which both transforms may go next to the map. Nothing if there is none, if a passed value has
// another reader, or if that is smaller.
std::optional<size_t> MeetingAxis(const SegmentInstruction& first, const SegmentInstruction& map,
                                  const SegmentInstruction& last, int64_t least_bytes) {
  const BoundInstruction &forth = first.bound, &back = last.bound;
  if (!IsFree(forth) || !IsFree(back)) return std::nullopt;
  // The same type everywhere, so that all lies in the place of the result.
  const ConcreteType& type = back.results[0];
  if (!(forth.results[0] == type) || !(back.operands[0] == type) || type.num_bytes() < least_bytes) {
    return std::nullopt;
  }
  const bool passes = map.results.size() == 1 && first.num_readers[0] == 1 && map.num_readers[0] == 1 &&
                      map.results[0] == last.operands[0] && ReadsOnce(map, first.results[0], type);
  return passes ? SlowestCommonAxis(forth, back) : std::nullopt;
}

bool TakesLanes(const ConcreteType& type, size_t axis) {
  const int64_t length = type.shape[axis];
  FftLineTask task{
      .is_double = type.dtype == DType::kC128, .length = length, .num_lines = type.num_elements() / length};
  task.lines.inner = ColumnMajorStrides(type.shape)[axis];
  return RunsInLanes(task);
}

bool IsProduct(const BoundInstruction& map) {
  return map.micro == nullptr && Is(*map.op, CoreOp::kMultiply) && map.operands[0] == map.results[0] &&
         map.operands[1] == map.results[0];
}

// A product of two whole tensors by itself is an op, as a map it is this.
MicroProgram ProductOf(const BoundInstruction& multiply) {
  MicroProgram product;
  product.axes = {{.size = multiply.results[0].num_elements()}};
  for (int32_t k : {0, 1}) {
    const DType dtype = multiply.operands[static_cast<size_t>(k)].dtype;
    product.tensors.push_back(dtype);
    product.instructions.push_back({.dtype = dtype, .tensor = k, .access = {.strides = {1}}});
  }
  product.instructions.push_back({.kind = MicroKind::kBinary,
                                  .dtype = multiply.results[0].dtype,
                                  .op = CoreOp::kMultiply,
                                  .operands = {0, 1, -1}});
  product.results = {{.value = 2}};
  return product;
}

// Plans a transform along one axis, the map and the way back in blocks of lines. Nothing if the map does not write over
// the lines that it reads: blocks have room for no others.
std::optional<BlockPlan> PlanLines(absl::Span<const SegmentInstruction> segments, absl::Span<const AxisCut> cuts) {
  const TensorBox lines(segments[0].bound.results[0].shape, cuts);
  const std::array<PassingBox, 2> passing = {{{segments[0].results[0], lines}, {segments[1].results[0], lines}}};
  BlockPlanner planner(segments, NumBlocks(cuts));
  for (const SegmentInstruction& segment : segments) {
    std::optional<SegmentBlocks> cut = SegmentBlocks::CutBoxes(segment, cuts, passing);
    if (!cut.has_value()) return std::nullopt;
    planner.Add(*std::move(cut));
  }
  BlockPlan plan = std::move(planner).Plan(segments.size());
  if (plan.segments[0].results[0].offset != plan.segments[1].results[0].offset) return std::nullopt;
  return plan;
}

// Makes the kernel of the transform along its axes but one; none if it has no other. False if it cannot be made.
bool MakeAlongOthers(const BoundInstruction& transform, size_t axis, const JoinContext& context,
                     std::unique_ptr<const Kernel>* kernel) {
  const Attributes attrs = Along(*transform.attrs, axis, /*others=*/true);
  if (attrs.Ints("axes").empty()) return true;
  BoundInstruction others = transform;
  others.attrs = &attrs;
  absl::StatusOr<std::unique_ptr<Kernel>> along = context(others);
  if (along.ok()) *kernel = *std::move(along);
  return along.ok();
}

}  // namespace

std::unique_ptr<const TransformedMap> TransformedMap::Plan(absl::Span<const SegmentInstruction> segments,
                                                           const JoinContext& context) {
  const ChainLimits& limits = context.limits;
  if (limits.block_bytes <= 0 || segments.size() < kNumSegments) return nullptr;
  const SegmentInstruction &first = segments[0], &map = segments[1], &last = segments[2];
  const std::optional<size_t> axis = MeetingAxis(first, map, last, limits.least_bytes);
  if (!axis.has_value()) return nullptr;
  const ConcreteType& type = last.bound.results[0];
  const std::vector<AxisCut> cuts = LineCuts(type, *axis, limits.block_bytes / kLinesPart);
  if (cuts.empty() || !TakesLanes(type, *axis)) return nullptr;

  std::unique_ptr<TransformedMap> made(new TransformedMap);
  if (!MakeAlongOthers(first.bound, *axis, context, &made->before_) ||
      !MakeAlongOthers(last.bound, *axis, context, &made->after_)) {
    return nullptr;
  }
  // Next to the map both go along that axis alone. The first reads what the kernel before left in the result's place.
  const Attributes forth = Along(*first.bound.attrs, *axis, /*others=*/false);
  const Attributes back = Along(*last.bound.attrs, *axis, /*others=*/false);
  std::array<SegmentInstruction, kNumSegments> lines = {first, map, last};
  lines[0].bound.attrs = &forth;
  lines[2].bound.attrs = &back;
  if (made->before_ != nullptr) {
    lines[0].bound.operands[0] = type;
    lines[0].operands = last.results;
  }
  MicroProgram product;
  if (IsProduct(map.bound)) {
    product = ProductOf(map.bound);
    lines[1].bound.micro = &product;
  }
  const std::optional<BlockPlan> plan = PlanLines(lines, cuts);
  if (!plan.has_value()) return nullptr;
  absl::StatusOr<std::unique_ptr<const BlockedSegments>> blocks = BlockedSegments::Create(*plan, context);
  if (!blocks.ok()) return nullptr;
  made->blocks_ = *std::move(blocks);
  made->operand_ = first.operands[0];
  made->result_ = last.results[0];
  return made;
}

int64_t TransformedMap::scratch_bytes() const {
  int64_t bytes = blocks_->scratch_bytes();
  for (const Kernel* kernel : {before_.get(), after_.get()}) {
    if (kernel != nullptr) bytes = std::max(bytes, kernel->scratch_bytes());
  }
  return bytes;
}

std::string TransformedMap::Describe(size_t segment) const {
  std::string text = blocks_->Describe(segment);
  if (segment == 0 && before_ != nullptr) return absl::StrCat(before_->Describe(), ", then ", text);
  if (segment == 2 && after_ != nullptr) return absl::StrCat(text, ", then ", after_->Describe());
  return text;
}

absl::Status TransformedMap::Run(const JoinRun& run) const {
  const absl::Span<SegmentTime> times = run.times;
  const auto along_others = [&](const Kernel* kernel, Slot from) {
    if (kernel == nullptr) return;
    const void* const operand = run.At(from);
    void* const result = run.At(result_);
    kernel->Run({.operands = {&operand, 1}, .results = {&result, 1}, .scratch = run.scratch, .pool = &run.pool});
  };
  const Clock::time_point start = times.empty() ? Clock::time_point() : Clock::now();
  along_others(before_.get(), operand_);
  RETURN_IF_ERROR(blocks_->Run(run));
  along_others(after_.get(), result_);
  if (times.empty()) return absl::OkStatus();
  times.front().start = start;
  times.back().end = Clock::now();
  return absl::OkStatus();
}

}  // namespace tensord::cpu
