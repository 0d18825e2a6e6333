#include "backends/cpu/joins/segment_blocks.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/contraction/kernels.h"
#include "backends/cpu/fft/kernels.h"
#include "backends/cpu/fft/lines_kernel.h"
#include "backends/cpu/fused/kernel.h"
#include "engine/ops/core_ops.h"

namespace tensord::cpu {
namespace {

// The part left to cut while axes are gone through, the slowest first.
class Cutter {
 public:
  explicit Cutter(int64_t blocks) : rest_(blocks) {}

  bool is_done() const { return rest_ == 1; }
  // How many parts an axis is cut into; 0 if they would not be equal.
  int64_t PartsOf(int64_t size) {
    if (rest_ >= size) {
      if (rest_ % size != 0) return 0;
      rest_ /= size;
      return size;
    }
    if (size % rest_ != 0) return 0;
    return std::exchange(rest_, 1);
  }

 private:
  int64_t rest_;
};

}  // namespace

void BlockWalk::Locate(int64_t block, absl::Span<int64_t> offsets, absl::Span<int64_t> origin) const {
  std::fill(offsets.begin(), offsets.end(), 0);
  std::fill(origin.begin(), origin.end(), 0);
  for (const Loop& loop : loops_) {
    const int64_t index = block % loop.count;
    block /= loop.count;
    for (size_t t = 0; t < offsets.size(); ++t) offsets[t] += index * loop.steps[t];
    if (!origin.empty()) origin[loop.axis] = index * loop.part;
  }
}

std::vector<int64_t> BlockCounts(const ConcreteType& type, int64_t most) {
  std::vector<int64_t> counts;
  int64_t slower = 1;
  for (size_t d = type.shape.size(); d-- > 0 && slower <= most;) {
    const int64_t size = type.shape[d];
    for (int64_t parts = 2; parts <= size && slower * parts <= most; ++parts) {
      if (size % parts == 0) counts.push_back(slower * parts);
    }
    slower *= size;
  }
  return counts;
}

std::optional<SegmentBlocks> SegmentBlocks::Cut(const BoundInstruction& instruction, int64_t blocks) {
  SegmentBlocks cut(instruction, blocks);
  if (HasEmptyAxis(instruction)) return std::nullopt;
  const bool can = instruction.micro != nullptr ? cut.CutFused()
                   : IsOrdinaryDot(instruction) ? cut.CutDot()
                   : IsFft(*instruction.op)     ? cut.CutTransform()
                                                : cut.CutElementwise();
  if (!can) return std::nullopt;
  return cut;
}

bool SegmentBlocks::CutDot() {
  DotSpace space = DotSpaceOf(*instruction_);
  if (space.Size(kSummed) == 0) return false;
  // A result may have its axes in any order.
  absl::InlinedVector<DotAxis*, 8> slowest_first;
  for (DotRole role : {kRows, kColumns, kBatch}) {
    for (DotAxis& axis : space.roles[role]) slowest_first.push_back(&axis);
  }
  std::sort(slowest_first.begin(), slowest_first.end(),
            [](const DotAxis* a, const DotAxis* b) { return a->strides[kDotResult] > b->strides[kDotResult]; });
  Cutter cutter(blocks_);
  std::vector<BlockWalk::Loop> loops;
  for (DotAxis* axis : slowest_first) {
    if (cutter.is_done()) break;
    const int64_t parts = cutter.PartsOf(axis->size);
    if (parts == 0) return false;
    loops.insert(loops.begin(), CutAxis(parts, axis));
  }
  for (DotRole role : {kRows, kColumns, kBatch}) space.roles[role] = MergeAxes(space.roles[role]);
  if (!cutter.is_done()) return false;
  PlaceDot(std::move(space), std::move(loops));
  return true;
}

BlockWalk::Loop SegmentBlocks::CutAxis(int64_t parts, DotAxis* axis) const {
  axis->size /= parts;
  BlockWalk::Loop loop{.count = parts};
  for (const DotSide side : {kLhs, kRhs, kDotResult}) {
    const ConcreteType& type = side == kDotResult ? instruction_->results[0] : instruction_->operands[side];
    loop.steps.push_back(axis->strides[side] * axis->size * SizeOf(type.dtype));
  }
  return loop;
}

void SegmentBlocks::PlaceDot(DotSpace space, std::vector<BlockWalk::Loop> loops) {
  multiplications_ = static_cast<double>(blocks_);
  for (const DotAxisList& axes : space.roles) {
    for (const DotAxis& axis : axes) multiplications_ *= static_cast<double>(axis.size);
  }
  for (DotSide side : {kLhs, kRhs}) {
    int64_t last = 0;
    for (const DotAxisList& axes : space.roles) {
      for (const DotAxis& axis : axes) last += (axis.size - 1) * axis.strides[side];
    }
    reaches_.push_back({0, last});
  }
  space_ = std::move(space);
  walk_ = BlockWalk(std::move(loops), 0);
}

bool SegmentBlocks::CutFused() {
  const MicroProgram& whole = *instruction_->micro;
  MicroProgram micro = whole;
  Cutter cutter(blocks_);
  std::vector<BlockWalk::Loop> loops;
  for (size_t d = micro.axes.size(); d-- > 0 && !cutter.is_done();) {
    MicroAxis& axis = micro.axes[d];
    const int64_t parts = cutter.PartsOf(axis.size);
    if (parts == 0 || (axis.is_reduced && parts > 1)) return false;
    axis.size /= parts;
    if (parts > 1) loops.insert(loops.begin(), {.count = parts, .axis = d, .part = axis.size});
  }
  return cutter.is_done() && PlaceFused(whole, micro, std::move(loops));
}

bool SegmentBlocks::PlaceFused(const MicroProgram& whole, const MicroProgram& micro,
                               std::vector<BlockWalk::Loop> loops) {
  const size_t num_operands = instruction_->operands.size();
  for (BlockWalk::Loop& loop : loops) loop.steps.assign(num_operands + instruction_->results.size(), 0);
  reaches_.resize(num_operands);
  std::vector<bool> is_read(num_operands);
  for (const MicroInstruction& load : micro.instructions) {
    if (load.kind != MicroKind::kLoad) continue;
    const size_t operand = static_cast<size_t>(load.tensor);
    int64_t first = load.access.offset, last = first;
    for (size_t d = 0; d < micro.axes.size(); ++d) {
      const int64_t way = (micro.axes[d].size - 1) * load.access.strides[d];
      (way < 0 ? first : last) += way;
    }
    Reach& reach = reaches_[operand];
    reach = is_read[operand] ? Reach{std::min(reach.first, first), std::max(reach.last, last)} : Reach{first, last};
    for (BlockWalk::Loop& loop : loops) {
      const int64_t step = load.access.strides[loop.axis] * loop.part * SizeOf(micro.tensors[operand]);
      if (is_read[operand] && loop.steps[operand] != step) return false;
      loop.steps[operand] = step;
    }
    is_read[operand] = true;
  }
  for (size_t r = 0; r < micro.results.size(); ++r) {
    const MicroInstruction& value = micro.instructions[static_cast<size_t>(micro.results[r].value)];
    if (value.level == MicroLevel::kUniform) return false;
    for (BlockWalk::Loop& loop : loops) {
      int64_t stride = SizeOf(value.dtype);
      for (size_t d = 0; d < loop.axis; ++d) {
        const bool counts = value.level == MicroLevel::kFull || !whole.axes[d].is_reduced;
        if (counts) stride *= whole.axes[d].size;
      }
      loop.steps[num_operands + r] = stride * loop.part;
    }
  }
  walk_ = BlockWalk(std::move(loops), micro.axes.size());
  micro_ = micro;
  return true;
}

bool SegmentBlocks::CutElementwise() {
  const OpDef& op = *instruction_->op;
  // Kernels of extensions may fail, which nobody in a chain asks for.
  if (!op.has(kElementwise) || op.op_class == OpClass::kExtension || instruction_->results.size() != 1) return false;
  const int64_t elements = instruction_->results[0].num_elements();
  if (elements % blocks_ != 0) return false;
  BlockWalk::Loop loop;
  loop.count = blocks_;
  for (const ConcreteType& operand : instruction_->operands) {
    const bool is_cut = operand.num_elements() == elements;
    if (!is_cut && operand.num_elements() != 1) return false;
    loop.steps.push_back(is_cut ? operand.num_bytes() / blocks_ : 0);
    reaches_.push_back({0, is_cut ? elements / blocks_ - 1 : 0});
  }
  loop.steps.push_back(instruction_->results[0].num_bytes() / blocks_);
  walk_ = BlockWalk({std::move(loop)}, 0);
  return true;
}

// Whole lines: along axes that are not transformed.
bool SegmentBlocks::CutTransform() {
  const std::vector<int64_t>& axes = instruction_->attrs->Ints("axes");
  BlockTypes types{instruction_->operands[0], instruction_->results[0]};
  Cutter cutter(blocks_);
  for (size_t d = types.result.shape.size(); d-- > 0 && !cutter.is_done();) {
    const int64_t parts = cutter.PartsOf(types.result.shape[d]);
    const bool is_transformed = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (parts == 0 || (is_transformed && parts > 1)) return false;
    types.operand.shape[d] /= parts;
    types.result.shape[d] /= parts;
  }
  if (!cutter.is_done()) return false;
  BlockWalk::Loop loop;
  loop.count = blocks_;
  loop.steps = {types.operand.num_bytes(), types.result.num_bytes()};
  reaches_.push_back({0, types.operand.num_elements() - 1});
  walk_ = BlockWalk({std::move(loop)}, 0);
  types_ = std::move(types);
  return true;
}

std::optional<SegmentBlocks> SegmentBlocks::CutReduction(const BoundInstruction& instruction, int64_t blocks) {
  SegmentBlocks cut(instruction, blocks);
  if (HasEmptyAxis(instruction)) return std::nullopt;
  const bool can = instruction.micro != nullptr           ? cut.CutFused() || cut.CutFusedReduction()
                   : Is(*instruction.op, CoreOp::kReduce) ? cut.CutPlainReduction()
                                                          : false;
  if (!can) return std::nullopt;
  return cut;
}

bool SegmentBlocks::CutPlainReduction() {
  const std::vector<int64_t>& reduced = instruction_->attrs->Ints("dimensions");
  BlockTypes types{instruction_->operands[0], instruction_->results[0]};
  size_t kept = types.result.shape.size();
  bool keeps = false;
  Cutter cutter(blocks_);
  for (size_t d = types.operand.shape.size(); d-- > 0 && !cutter.is_done();) {
    const int64_t parts = cutter.PartsOf(types.operand.shape[d]);
    if (parts == 0) return false;
    const bool is_reduced = std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d)) != reduced.end();
    types.operand.shape[d] /= parts;
    if (!is_reduced) types.result.shape[--kept] /= parts;
    if (parts > 1) (is_reduced ? reduces_parts_ : keeps) = true;
  }
  if (!cutter.is_done() || (reduces_parts_ && keeps)) return false;
  BlockWalk::Loop loop;
  loop.count = blocks_;
  loop.steps = {types.operand.num_bytes(), types.result.num_bytes()};
  reaches_.push_back({0, types.operand.num_elements() - 1});
  walk_ = BlockWalk({std::move(loop)}, 0);
  types_ = std::move(types);
  return true;
}

bool SegmentBlocks::CutFusedReduction() {
  const MicroProgram& whole = *instruction_->micro;
  for (const MicroResult& result : whole.results) {
    if (whole.instructions[static_cast<size_t>(result.value)].kind != MicroKind::kReduce) return false;
  }
  if (whole.axes.empty() || !whole.axes.back().is_reduced || whole.axes.back().size % blocks_ != 0) return false;
  MicroProgram micro = whole;
  MicroAxis& axis = micro.axes.back();
  axis.size /= blocks_;
  BlockWalk::Loop loop = {.count = blocks_, .axis = micro.axes.size() - 1, .part = axis.size};
  if (!PlaceFused(whole, micro, {std::move(loop)})) return false;
  loop = walk_.loops()[0];
  for (size_t r = 0; r < whole.results.size(); ++r) {
    loop.steps[instruction_->operands.size() + r] = instruction_->results[r].num_bytes();
  }
  walk_ = BlockWalk({std::move(loop)}, micro.axes.size());
  reduces_parts_ = true;
  return true;
}

bool SegmentBlocks::ReadsPiece(size_t operand) const {
  const ConcreteType& type = instruction_->operands[operand];
  const int64_t piece = type.num_bytes() / blocks_;
  if (type.num_bytes() % blocks_ != 0) return false;
  int64_t step = piece;
  for (const BlockWalk::Loop& loop : walk_.loops()) {
    if (loop.steps[operand] != step) return false;
    step *= loop.count;
  }
  const Reach& reach = reaches_[operand];
  return reach.first >= 0 && reach.last < piece / SizeOf(type.dtype);
}

int64_t SegmentBlocks::BlockBytes(size_t operand) const {
  const Reach& reach = reaches_[operand];
  const ConcreteType& type = instruction_->operands[operand];
  // A part of a tensor may lie scattered: it is no more than as many parts as it has places.
  int64_t places = 1;
  for (const BlockWalk::Loop& loop : walk_.loops()) places *= loop.steps[operand] != 0 ? loop.count : 1;
  return std::min((reach.last - reach.first + 1) * SizeOf(type.dtype), type.num_bytes() / places);
}

bool SegmentBlocks::MayOverwrite(size_t result, size_t operand) const {
  if (micro_.has_value()) {
    const auto pairs = InPlacePairs(*micro_);
    const std::pair<int32_t, int32_t> pair = {static_cast<int32_t>(result), static_cast<int32_t>(operand)};
    return std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
  }
  if (types_.has_value()) return types_->operand == types_->result;
  return is_elementwise();
}

absl::StatusOr<std::unique_ptr<Kernel>> SegmentBlocks::MakeKernel(const JoinContext& context) const {
  if (space_.has_value()) return MakePartialDotKernel(*instruction_, *space_);
  if (lines_.has_value()) {
    const bool is_double = instruction_->results[0].dtype == DType::kC128;
    return MakeFftLinesKernel(is_double, *lines_, context.fft_transforms);
  }
  BoundInstruction block = *instruction_;
  if (micro_.has_value()) {
    block.micro = &*micro_;
    return MakeFusedKernel(block, context.jit);
  }
  if (types_.has_value()) {
    block.operands[0] = types_->operand;
    block.results[0] = types_->result;
    return context(block);
  }
  const auto shrink = [this](ConcreteType& type) {
    if (type.num_elements() > 1) type.shape = {type.num_elements() / blocks_};
  };
  std::for_each(block.operands.begin(), block.operands.end(), shrink);
  std::for_each(block.results.begin(), block.results.end(), shrink);
  return context(block);
}

}  // namespace tensord::cpu
