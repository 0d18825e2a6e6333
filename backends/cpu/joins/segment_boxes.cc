// Segments in blocks that have boxes of their result.

#include <algorithm>
#include <utility>

#include "backends/cpu/contraction/kernels.h"
#include "backends/cpu/fft/kernels.h"
#include "backends/cpu/joins/segment_blocks.h"
#include "engine/families/fft/fft_steps.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

// Takes merged axes apart at the ends of axes of a tensor of that shape.
void SplitAxes(DotSide side, const Shape& shape, DotSpace* space) {
  const Shape strides = ColumnMajorStrides(shape);
  for (DotAxisList& axes : space->roles) {
    DotAxisList split;
    for (DotAxis rest : axes) {
      for (size_t axis = 0; axis < shape.size() && rest.size > 1; ++axis) {
        if (shape[axis] == 1 || strides[axis] != rest.strides[side] || shape[axis] >= rest.size) continue;
        split.push_back({shape[axis], rest.strides});
        rest.size /= shape[axis];
        for (int64_t& stride : rest.strides) stride *= shape[axis];
      }
      split.push_back(rest);
    }
    axes = std::move(split);
  }
}

DotAxis* FindInResult(int64_t stride, DotSpace* space) {
  for (DotRole role : {kRows, kColumns, kBatch}) {
    for (DotAxis& axis : space->roles[role]) {
      if (axis.strides[kDotResult] == stride && axis.size > 1) return &axis;
    }
  }
  return nullptr;
}

// Makes an axis of a dense result one of the micro program.
bool Isolate(int64_t stride, int64_t size, MicroProgram* micro) {
  int64_t own = 1;
  for (size_t d = 0; d < micro->axes.size(); own *= micro->axes[d++].size) {
    const int64_t whole = micro->axes[d].size;
    if (stride < own || stride >= own * whole) continue;
    const int64_t inner = stride / own;
    if (stride % own != 0 || whole % (inner * size) != 0) return false;
    const int64_t outer = whole / inner / size;
    const auto split = [&](size_t at, int64_t first, int64_t second) {
      if (second == 1) return;
      micro->axes[at].size = first;
      MicroAxis next = micro->axes[at];
      next.size = second;
      micro->axes.insert(micro->axes.begin() + static_cast<std::ptrdiff_t>(at) + 1, next);
      for (MicroInstruction& instruction : micro->instructions) {
        auto& strides = instruction.access.strides;
        if (strides.empty()) continue;
        strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(at) + 1, strides[at] * first);
      }
    };
    split(d, inner * size, outer);
    if (inner > 1) split(d, inner, size);
    return true;
  }
  return false;
}

bool IsMapOfOneResult(const BoundInstruction& instruction) {
  if (instruction.micro == nullptr || instruction.results.size() != 1) return false;
  const MicroProgram& micro = *instruction.micro;
  const auto reduces = [](const MicroInstruction& value) { return value.kind == MicroKind::kReduce; };
  const MicroInstruction& result = micro.instructions[static_cast<size_t>(micro.results[0].value)];
  return !micro.has_reduced_axes() && result.level == MicroLevel::kFull &&
         std::none_of(micro.instructions.begin(), micro.instructions.end(), reduces);
}

}  // namespace

std::optional<SegmentBlocks> SegmentBlocks::CutBoxes(const SegmentInstruction& segment, absl::Span<const AxisCut> cuts,
                                                     absl::Span<const PassingBox> passing) {
  const BoundInstruction& instruction = segment.bound;
  if (instruction.results.size() != 1 || HasEmptyAxis(instruction)) return std::nullopt;
  std::vector<std::optional<TensorBox>> boxes;
  for (const absl::Span<const Slot> slots : {segment.operands, segment.results}) {
    for (const Slot slot : slots) {
      const auto it = std::find_if(passing.begin(), passing.end(), [&](const auto& box) { return box.slot == slot; });
      boxes.push_back(it != passing.end() ? std::optional(it->box) : std::nullopt);
    }
  }
  SegmentBlocks made(instruction, NumBlocks(cuts));
  const bool is_dot = IsOrdinaryDot(instruction);
  const bool is_line =
      instruction.micro == nullptr && KeepsSizes(instruction) && instruction.attrs->Ints("axes").size() == 1;
  const bool can = is_dot                          ? made.CutDotIntoBoxes(cuts, boxes)
                   : is_line                       ? made.CutLinesIntoBoxes(cuts, boxes)
                   : IsMapOfOneResult(instruction) ? made.CutMapIntoBoxes(cuts, boxes)
                                                   : false;
  if (!can) return std::nullopt;
  return made;
}

bool SegmentBlocks::CutDotIntoBoxes(absl::Span<const AxisCut> cuts, absl::Span<const std::optional<TensorBox>> boxes) {
  DotSpace space = DotSpaceOf(*instruction_);
  if (space.Size(kSummed) == 0) return false;
  const Shape& shape = instruction_->results[0].shape;
  const Shape strides = ColumnMajorStrides(shape);
  SplitAxes(kDotResult, shape, &space);
  for (const DotSide side : {kLhs, kRhs}) {
    if (boxes[side].has_value()) SplitAxes(side, instruction_->operands[side].shape, &space);
  }
  std::vector<BlockWalk::Loop> loops;
  for (const AxisCut& cut : cuts) {
    DotAxis* const axis = FindInResult(strides[cut.axis], &space);
    if (axis == nullptr || axis->size != shape[cut.axis] || axis->size % cut.parts != 0) return false;
    loops.push_back(CutAxis(cut.parts, axis));
  }
  for (DotAxisList& role : space.roles) {
    role.erase(std::remove_if(role.begin(), role.end(), [](const DotAxis& axis) { return axis.size == 1; }),
               role.end());
    for (DotAxis& axis : role) {
      for (size_t side = 0; side < kNumDotSides; ++side) {
        if (boxes[side].has_value()) axis.strides[side] = boxes[side]->StrideInBox(axis.strides[side]);
      }
    }
  }
  // Axes of a role are in the order of the result.
  for (const DotRole role : {kRows, kColumns, kBatch}) {
    std::stable_sort(space.roles[role].begin(), space.roles[role].end(),
                     [](const DotAxis& a, const DotAxis& b) { return a.strides[kDotResult] < b.strides[kDotResult]; });
  }
  for (DotAxisList& role : space.roles) role = MergeAxes(role);
  PlaceDot(std::move(space), std::move(loops));
  return true;
}

bool SegmentBlocks::CutMapIntoBoxes(absl::Span<const AxisCut> cuts, absl::Span<const std::optional<TensorBox>> boxes) {
  MicroProgram whole = *instruction_->micro;
  const Shape& shape = instruction_->results[0].shape;
  const Shape strides = ColumnMajorStrides(shape);
  for (const AxisCut& cut : cuts) {
    if (shape[cut.axis] > 1 && !Isolate(strides[cut.axis], shape[cut.axis], &whole)) return false;
  }
  MicroProgram micro = whole;
  std::vector<BlockWalk::Loop> loops;
  for (const AxisCut& cut : cuts) {
    size_t d = 0;
    for (int64_t stride = 1; d < whole.axes.size() && stride < strides[cut.axis]; ++d) stride *= whole.axes[d].size;
    if (d == whole.axes.size() || whole.axes[d].size != shape[cut.axis] || shape[cut.axis] % cut.parts != 0) {
      return false;
    }
    micro.axes[d].size /= cut.parts;
    loops.push_back({.count = cut.parts, .axis = d, .part = micro.axes[d].size});
  }
  // Loads from a box are read at the place of the result.
  for (MicroInstruction& load : micro.instructions) {
    if (load.kind != MicroKind::kLoad || !boxes[static_cast<size_t>(load.tensor)].has_value()) continue;
    const ConcreteType& read = instruction_->operands[static_cast<size_t>(load.tensor)];
    if (read.num_elements() != instruction_->results[0].num_elements()) return false;  // its first elements
    if (!IsDense(whole, load.access, MicroLevel::kFull)) return false;
    int64_t stride = 1;
    for (size_t d = 0; d < micro.axes.size(); stride *= micro.axes[d++].size) load.access.strides[d] = stride;
  }
  return PlaceFused(whole, micro, std::move(loops));
}

bool SegmentBlocks::CutLinesIntoBoxes(absl::Span<const AxisCut> cuts,
                                      absl::Span<const std::optional<TensorBox>> boxes) {
  const ConcreteType &operand = instruction_->operands[0], &result = instruction_->results[0];
  const size_t axis = static_cast<size_t>(instruction_->attrs->Ints("axes")[0]);
  const Shape strides = ColumnMajorStrides(result.shape);
  Shape part = result.shape;
  std::vector<BlockWalk::Loop> loops;
  for (const AxisCut& cut : cuts) {
    if (cut.axis == axis || part[cut.axis] % cut.parts != 0) return false;
    part[cut.axis] /= cut.parts;
    const int64_t step = strides[cut.axis] * part[cut.axis];
    loops.push_back({.count = cut.parts, .steps = {step * SizeOf(operand.dtype), step * SizeOf(result.dtype)}});
  }
  const FftStep step{
      .axis = static_cast<int64_t>(axis), .length = part[axis], .kind = FftKind{instruction_->attrs->Int("kind")}};
  FftLines lines{.in_length = step.length,
                 .out_length = step.length,
                 .real_in = operand.dtype != result.dtype,
                 .forward = step.forward(),
                 .scale = FftScale(*instruction_->attrs, step)};
  for (size_t d = 0; d < part.size(); ++d) {
    if (d == axis || part[d] == 1) continue;
    if (strides[d] != lines.inner) return false;
    lines.inner *= part[d];
  }
  for (const std::optional<TensorBox>& box : boxes) {
    if (box.has_value() && box->StrideInBox(strides[axis]) != lines.inner) return false;
  }
  if (!boxes[0].has_value()) lines.in_step = strides[axis];
  if (!boxes[1].has_value()) lines.out_step = strides[axis];
  reaches_.push_back({0, (lines.inner - 1) + (step.length - 1) * strides[axis]});
  walk_ = BlockWalk(std::move(loops), 0);
  lines_ = lines;
  return true;
}

}  // namespace tensord::cpu
