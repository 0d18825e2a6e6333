#include "backends/cpu/joins/transformed_map.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/fft/kernels.h"
#include "backends/cpu/fft/line_step.h"
#include "backends/cpu/fft/transforms.h"
#include "backends/cpu/fused/kernel.h"
#include "backends/cpu/machine/task_slots.h"
#include "engine/base/rounding.h"
#include "engine/families/fft/fft_steps.h"

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

// Tells whether it may go along its axes in any order, with all sizes as they are.
bool IsFree(const BoundInstruction& transform) {
  if (!IsFft(*transform.op) || transform.operands[0].shape != transform.results[0].shape) return false;
  const FftKind kind = static_cast<FftKind>(transform.attrs->Int("kind"));
  Axes sorted = transform.attrs->Ints("axes");
  std::sort(sorted.begin(), sorted.end());
  return (kind == FftKind::kFft || kind == FftKind::kIfft) &&
         std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

std::optional<size_t> SlowestCommonAxis(const BoundInstruction& a, const BoundInstruction& b) {
  for (size_t d = a.results[0].shape.size(); d-- > 0;) {
    if (a.results[0].shape[d] > 1 && Contains(a.attrs->Ints("axes"), d) && Contains(b.attrs->Ints("axes"), d)) return d;
  }
  return std::nullopt;
}

// Returns the transform along all its axes but one, where there are others.
std::optional<Attributes> AlongOthers(const Attributes& attrs, size_t axis) {
  const Axes &axes = attrs.Ints("axes"), &lengths = attrs.Ints("lengths");
  Axes others, other_lengths;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] == static_cast<int64_t>(axis)) continue;
    others.push_back(axes[i]);
    if (!lengths.empty()) other_lengths.push_back(lengths[i]);
  }
  if (others.empty()) return std::nullopt;
  Attributes rest = attrs;
  rest.Set("axes", std::move(others)).Set("lengths", std::move(other_lengths));
  return rest;
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

// Lines along an axis in blocks of some that lie beside each other.
struct LineBlocks {
  int64_t lines = 0;
  std::vector<AxisCut> cuts;
  std::vector<int64_t> steps;  // elements from one block to the next, by cut
};

// Returns nothing if no elements lie side by side across the axis, or too few would fit into so many bytes.
std::optional<LineBlocks> BlocksOf(const ConcreteType& type, size_t axis, int64_t most_bytes) {
  const Shape strides = ColumnMajorStrides(type.shape);
  LineBlocks blocks;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const int64_t size = type.shape[d];
    if (d == axis || size == 1) continue;
    if (blocks.lines > 0) {
      blocks.cuts.push_back({.axis = d, .parts = size});
      blocks.steps.push_back(strides[d]);
      continue;
    }
    if (d < axis) blocks.lines = LinesUpTo(size, most_bytes / (type.shape[axis] * SizeOf(type.dtype)));
    if (blocks.lines == 0) return std::nullopt;
    blocks.cuts.push_back({.axis = d, .parts = size / blocks.lines});
    blocks.steps.push_back(blocks.lines);
  }
  if (blocks.lines == 0) return std::nullopt;
  return blocks;
}

// Returns the axis along which both transforms may go next to the map. Nothing if there is none, if another segment
// reads a passed value, or if that is smaller.
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
                      map.results[0] == last.operands[0];
  return passes ? SlowestCommonAxis(forth, back) : std::nullopt;
}

// Makes the kernel of the transform along its axes but one; none if it has no other. False if it cannot be made.
bool MakeAlongOthers(const BoundInstruction& transform, size_t axis, const JoinContext& context,
                     std::unique_ptr<const Kernel>* kernel) {
  const std::optional<Attributes> attrs = AlongOthers(*transform.attrs, axis);
  if (!attrs.has_value()) return true;
  BoundInstruction others = transform;
  others.attrs = &*attrs;
  absl::StatusOr<std::unique_ptr<Kernel>> along = context(others);
  if (along.ok()) *kernel = *std::move(along);
  return along.ok();
}

// So many lines of the transform along that axis.
FftLines LinesOf(const BoundInstruction& transform, size_t axis, int64_t lines) {
  const int64_t length = transform.results[0].shape[axis];
  const FftStep step{
      .axis = static_cast<int64_t>(axis), .length = length, .kind = static_cast<FftKind>(transform.attrs->Int("kind"))};
  return FftLines{.inner = lines,
                  .in_length = length,
                  .out_length = length,
                  .forward = step.forward(),
                  .scale = FftScale(*transform.attrs, step)};
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

}  // namespace

std::unique_ptr<const TransformedMap> TransformedMap::Plan(absl::Span<const SegmentInstruction> segments,
                                                           const JoinContext& context) {
  const ChainLimits& limits = context.limits;
  if (limits.block_bytes <= 0 || segments.size() < kNumSegments) return nullptr;
  const SegmentInstruction &first = segments[0], &map = segments[1], &last = segments[2];
  const std::optional<size_t> axis = MeetingAxis(first, map, last, limits.least_bytes);
  if (!axis.has_value()) return nullptr;
  const ConcreteType& type = last.bound.results[0];
  const std::optional<LineBlocks> blocks = BlocksOf(type, *axis, limits.block_bytes / kLinesPart);
  if (!blocks.has_value()) return nullptr;
  const int64_t length = type.shape[*axis], inner = ColumnMajorStrides(type.shape)[*axis];
  FftLineTask task{
      .is_double = type.dtype == DType::kC128, .length = length, .num_lines = type.num_elements() / length};
  task.lines.inner = inner;
  if (!RunsInLanes(task)) return nullptr;

  std::unique_ptr<TransformedMap> made(new TransformedMap);
  made->transform_ = context.fft_transforms.Lanes(task.is_double, task.form, length);
  if (!MakeAlongOthers(first.bound, *axis, context, &made->before_) ||
      !MakeAlongOthers(last.bound, *axis, context, &made->after_)) {
    return nullptr;
  }
  made->forth_ = LinesOf(first.bound, *axis, blocks->lines);
  made->forth_.in_step = inner;
  made->forth_.real_in = made->before_ == nullptr && first.bound.operands[0].dtype != type.dtype;
  made->back_ = LinesOf(last.bound, *axis, blocks->lines);
  made->back_.out_step = inner;
  const int64_t element_bytes = SizeOf(type.dtype), read_bytes = element_bytes / (made->forth_.real_in ? 2 : 1);
  std::vector<BlockWalk::Loop> loops;
  for (size_t i = 0; i < blocks->cuts.size(); ++i) {
    const int64_t step = blocks->steps[i];
    loops.push_back({.count = blocks->cuts[i].parts, .steps = {step * read_bytes, step * element_bytes}});
    made->num_blocks_ *= blocks->cuts[i].parts;
  }
  made->places_ = BlockWalk(std::move(loops), 0);

  if (!made->MakeMap(map, first.results[0], blocks->cuts, context.jit)) return nullptr;
  made->PlaceScratch(blocks->lines * length * element_bytes, context.threads);
  made->passing_ = {first.results[0], map.results[0]};
  made->operand_ = first.operands[0];
  made->result_ = last.results[0];
  return made;
}

void TransformedMap::PlaceScratch(int64_t lines_bytes, int threads) {
  scratch_.transform_offset = RoundUp(lines_bytes, 64);
  scratch_.map_offset = scratch_.transform_offset + RoundUp(transform_->task_bytes(), 64);
  scratch_.map_workspace_offset = scratch_.map_offset + RoundUp(map_->scratch_bytes(), 64);
  scratch_.bytes = scratch_.map_workspace_offset + RoundUp(map_->workspace_bytes(), 64);
  scratch_slots_ = std::clamp<int64_t>(threads, 1, num_blocks_);
}

bool TransformedMap::MakeMap(const SegmentInstruction& map, Slot passed, absl::Span<const AxisCut> cuts,
                             const JitOptions& jit) {
  BoundInstruction whole = map.bound;
  const ConcreteType& type = whole.results[0];
  MicroProgram product;
  if (whole.micro == nullptr) {
    if (!Is(*whole.op, CoreOp::kMultiply) || !(whole.operands[0] == type) || !(whole.operands[1] == type)) return false;
    product = ProductOf(whole);
    whole.micro = &product;
  }
  std::vector<std::optional<TensorBox>> boxes(whole.operands.size() + 1);
  boxes.back() = TensorBox(type.shape, cuts);
  size_t position = whole.operands.size();
  for (size_t k = 0; k < whole.operands.size(); ++k) {
    map_operands_.push_back(map.operands[k]);
    if (map.operands[k] != passed) continue;
    if (position < whole.operands.size() || !(whole.operands[k] == type)) return false;
    position = k;
    boxes[k] = boxes.back();
  }
  if (position == whole.operands.size()) return false;
  const std::optional<SegmentBlocks> blocks = SegmentBlocks::CutBoxes(whole, cuts, boxes);
  if (!blocks.has_value() || !blocks->MayOverwrite(0, position)) return false;
  const auto no_op = [](const BoundInstruction&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return absl::InternalError("a map is fused");
  };
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = blocks->MakeKernel(no_op, jit);
  if (!kernel.ok()) return false;
  map_ = *std::move(kernel);
  walk_ = blocks->walk();
  lines_operand_ = position;
  return true;
}

int64_t TransformedMap::scratch_bytes() const {
  int64_t bytes = scratch_slots_ * scratch_.bytes;
  for (const Kernel* kernel : {before_.get(), after_.get()}) {
    if (kernel != nullptr) bytes = std::max(bytes, kernel->scratch_bytes());
  }
  return bytes;
}

std::string TransformedMap::Describe(size_t segment) const {
  if (segment == 1) {
    return absl::StrCat(map_->Describe(), map_->Describe().empty() ? "" : ", ", "of ", forth_.inner,
                        " lines at a time");
  }
  const Kernel* const others = segment == 0 ? before_.get() : after_.get();
  const std::string along = absl::StrCat("fft ", forth_.in_length, " in lanes with the map between, ", num_blocks_,
                                         " blocks of ", forth_.inner, " lines");
  if (others == nullptr) return along;
  return segment == 0 ? absl::StrCat(others->Describe(), ", then ", along)
                      : absl::StrCat(along, ", then ", others->Describe());
}

void TransformedMap::RunBlock(int64_t block, const JoinRun& run, char* scratch) const {
  const auto at = [&](Slot slot) { return static_cast<char*>(run.At(slot)); };
  std::array<int64_t, 2> place = {};
  places_.Locate(block, absl::MakeSpan(place), {});
  FftLines forth = forth_, back = back_;
  forth.in = at(before_ != nullptr ? result_ : operand_) + place[0];
  forth.out = scratch;
  transform_->Run(forth, 0, forth.inner, scratch + scratch_.transform_offset);

  absl::InlinedVector<const void*, 8> operands;
  absl::InlinedVector<int64_t, 9> offsets(map_operands_.size() + 1);
  absl::InlinedVector<int64_t, 8> origin(walk_.num_axes());
  walk_.Locate(block, absl::MakeSpan(offsets), absl::MakeSpan(origin));
  for (size_t k = 0; k < map_operands_.size(); ++k) {
    operands.push_back(k == lines_operand_ ? scratch : at(map_operands_[k]) + offsets[k]);
  }
  void* const result = scratch;
  map_->Run({.operands = operands,
             .results = {&result, 1},
             .scratch = scratch + scratch_.map_offset,
             .pool = &run.pool,
             .workspace = scratch + scratch_.map_workspace_offset,
             .origin = origin});

  back.in = scratch;
  back.out = at(result_) + place[1];
  transform_->Run(back, 0, back.inner, scratch + scratch_.transform_offset);
}

absl::Status TransformedMap::Run(const JoinRun& run) const {
  const absl::Span<SegmentTime> times = run.times;
  const auto now = [&] { return times.empty() ? Clock::time_point() : Clock::now(); };
  const auto along_others = [&](const Kernel* kernel, Slot from) {
    if (kernel == nullptr) return;
    const void* const operand = run.At(from);
    void* const result = run.At(result_);
    kernel->Run({.operands = {&operand, 1}, .results = {&result, 1}, .scratch = run.scratch, .pool = &run.pool});
  };
  const Clock::time_point start = now();
  along_others(before_.get(), operand_);
  const Clock::time_point forth = now();
  RunInSlots(num_blocks_, scratch_slots_, run.pool, [&](int64_t block, int64_t slot) {
    RunBlock(block, run, static_cast<char*>(run.scratch) + slot * scratch_.bytes);
  });
  const Clock::time_point back = now();
  along_others(after_.get(), result_);
  if (times.empty()) return absl::OkStatus();
  const Clock::duration third = (back - forth) / 3;
  times[0] = {.start = start, .end = forth + third};
  times[1] = {.start = forth + third, .end = back - third};
  times[2] = {.start = back - third, .end = now()};
  return absl::OkStatus();
}

}  // namespace tensord::cpu
