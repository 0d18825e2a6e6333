#include "backends/cpu/dot.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"

namespace tensord::cpu {
namespace {

// Rows, columns and a batch for each of the two operands' axes, and one cut a role.
constexpr size_t kMaxLoops = 2 * StridedCopy::kMaxAxes + kNumDotRoles;

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

size_t Bit(DotRole role) { return size_t{1} << role; }

// The roles on which the place of an operand depends.
size_t RolesOf(size_t side) { return Bit(side == kLhs ? kRows : kColumns) | Bit(kSummed) | Bit(kBatch); }

}  // namespace

// One step of the walk over boxes.
struct Contraction::Position {
  std::array<int64_t, kNumDotSides> offsets = {0, 0, 0};  // bytes
  size_t variant = 0;
  bool is_first_sum = true;
  bool is_last_sum = true;
  std::array<bool, 2> fills = {true, true};
};

Contraction::Box Contraction::MakeBox(DotSpace space, const DotPlan& plan,
                                      const std::array<DotOperand, 2>& operands) const {
  Box box;
  box.occurs = true;
  for (DotSide side : {kLhs, kRhs}) {
    if (!plan.packs[side]) continue;
    box.panels[side] = DotPanel(side, plan.summed_first[side], operands[side].dtype, computed_,
                                operands[side].conjugates && !plan.product_conjugates[side], &space);
  }
  if (rounds_) box.rounded = RoundedBox(result_dtype_, &space);
  box.is_tiled = TiledGemm::Suits(space, computed_);
  if (box.is_tiled) {
    box.tiled = TiledGemm(space, computed_);
    return box;
  }
  box.products = DotProducts(space, computed_, plan.product_conjugates[kLhs], plan.product_conjugates[kRhs]);
  return box;
}

void Contraction::PlaceScratch() {
  const auto reserve = [this](auto bytes_of) {
    int64_t bytes = 0;
    for (const Box& box : boxes_) {
      if (box.occurs) bytes = std::max<int64_t>(bytes, bytes_of(box));
    }
    const int64_t offset = scratch_bytes_;
    scratch_bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  };
  for (size_t side : {kLhs, kRhs}) {
    if (!packs_[side]) continue;
    places_.panels[side] = reserve([side](const Box& box) { return box.panels[side].panel_bytes(); });
    places_.staging[side] = reserve([side](const Box& box) { return box.panels[side].staging_bytes(); });
  }
  if (rounds_) places_.rounded = reserve([](const Box& box) { return box.rounded.dense_bytes(); });
  places_.partials = reserve([](const Box& box) { return box.is_tiled ? 0 : box.products.partial_bytes(); });
  for (const Box& box : boxes_) {
    if (box.occurs && box.is_tiled) workspace_bytes_ = std::max(workspace_bytes_, box.tiled.scratch_bytes());
  }
}

absl::StatusOr<Contraction> Contraction::Create(const ConcreteType& lhs, const ConcreteType& rhs, const DotAxes& axes,
                                                DType result_dtype) {
  return Create(ClassifyAxes(lhs.shape, rhs.shape, axes),
                {DotOperand{lhs.dtype, axes.conjugates_lhs}, DotOperand{rhs.dtype, axes.conjugates_rhs}}, result_dtype);
}

absl::StatusOr<Contraction> Contraction::Create(const DotSpace& space, const std::array<DotOperand, 2>& read,
                                                DType result_dtype) {
  Contraction c;
  c.result_dtype_ = result_dtype;
  c.computed_ = IsHalf(result_dtype) ? DType::kF32 : result_dtype;
  c.rounds_ = c.result_dtype_ != c.computed_;
  if (space.Size(kRows) == 0 || space.Size(kColumns) == 0 || space.Size(kBatch) == 0) return c;

  const bool is_complex = kComplexes.Contains(c.computed_);
  const bool is_sum = space.Size(kSummed) > 0;
  std::array<DotOperand, 2> operands;
  for (DotSide side : {kLhs, kRhs}) {
    operands[side] = {is_sum ? read[side].dtype : c.computed_, read[side].conjugates && is_complex && is_sum};
  }
  const DotPlan plan = PlanDot(space, c.computed_, operands, c.rounds_);
  if (!plan.fits_blas) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("dot_general: a size or stride of the matrices is beyond the 32 bits of BLAS: m=",
                               space.Size(kRows), ", n=", space.Size(kColumns), ", k=", space.Size(kSummed),
                               "; contract smaller parts"));
  }
  c.packs_ = plan.packs;

  const std::array<int64_t, kNumDotSides> element_bytes = {SizeOf(read[kLhs].dtype), SizeOf(read[kRhs].dtype),
                                                           SizeOf(result_dtype)};
  std::array<DotCut, kNumDotRoles> cuts;
  size_t shorter = 0;
  c.num_boxes_ = 1;
  for (DotRole role : {kSummed, kRows, kColumns, kBatch}) {
    DotCut& cut = cuts[role];
    cut = CutAxes(plan.space.roles[role], plan.most[role]);
    if (cut.has_shorter_last) shorter |= Bit(role);
    for (size_t i = 0; i < cut.outer.size(); ++i) {
      Loop loop{role, cut.outer[i].size, cut.outer[i].strides, i == 0 && cut.has_shorter_last};
      for (size_t side = 0; side < kNumDotSides; ++side) loop.steps[side] *= element_bytes[side];
      c.loops_.push_back(loop);
      c.num_boxes_ *= loop.count;
    }
  }
  c.boxes_.resize(shorter + 1);
  for (size_t variant = 0; variant <= shorter; ++variant) {
    if ((variant & ~shorter) != 0) continue;
    DotSpace box;
    for (size_t role = 0; role < kNumDotRoles; ++role) {
      box.roles[role] = (variant >> role & 1) != 0 ? cuts[role].last : cuts[role].inner;
    }
    c.boxes_[variant] = c.MakeBox(std::move(box), plan, operands);
  }
  c.PlaceScratch();
  return c;
}

void Contraction::RunBox(const Position& position, std::array<const char*, 2> operands, char* result,
                         const Memory& memory, ThreadPool& pool) const {
  char* const scratch = memory.scratch;
  const Box& box = boxes_[position.variant];
  for (size_t side : {kLhs, kRhs}) {
    const char* const first = operands[side] + position.offsets[side];
    if (!packs_[side]) {
      operands[side] = first;
      continue;
    }
    char* const panel = scratch + places_.panels[side];
    if (position.fills[side]) box.panels[side].Fill(first, panel, scratch + places_.staging[side], pool);
    operands[side] = panel;
  }
  result += position.offsets[kDotResult];
  char* const computed = rounds_ ? scratch + places_.rounded : result;
  if (box.is_tiled) {
    box.tiled.Run(operands[kLhs], operands[kRhs], computed, memory.workspace, !position.is_first_sum, pool);
  } else {
    box.products.Run(operands[kLhs], operands[kRhs], computed, scratch + places_.partials, !position.is_first_sum,
                     pool);
  }
  if (rounds_ && position.is_last_sum) box.rounded.Store(computed, result, pool);
}

void Contraction::Run(const void* lhs, const void* rhs, void* result, void* scratch, void* workspace,
                      ThreadPool& pool) const {
  const std::array<const char*, 2> operands = {static_cast<const char*>(lhs), static_cast<const char*>(rhs)};
  const Memory memory = {static_cast<char*>(scratch), static_cast<char*>(workspace)};
  std::array<int64_t, kMaxLoops> index;
  std::fill_n(index.begin(), loops_.size(), 0);
  Position filled;
  for (int64_t box = 0; box < num_boxes_; ++box) {
    Position now;
    for (size_t i = 0; i < loops_.size(); ++i) {
      const Loop& loop = loops_[i];
      for (size_t side = 0; side < kNumDotSides; ++side) now.offsets[side] += index[i] * loop.steps[side];
      const bool is_last = index[i] == loop.count - 1;
      if (is_last && loop.has_shorter_last) now.variant |= Bit(loop.role);
      if (loop.role != kSummed) continue;
      now.is_first_sum = now.is_first_sum && index[i] == 0;
      now.is_last_sum = now.is_last_sum && is_last;
    }
    for (size_t side : {kLhs, kRhs}) {
      now.fills[side] = box == 0 || now.offsets[side] != filled.offsets[side] ||
                        ((now.variant ^ filled.variant) & RolesOf(side)) != 0;
    }
    RunBox(now, operands, static_cast<char*>(result), memory, pool);
    filled = now;
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (++index[i] < loops_[i].count) break;
      index[i] = 0;
    }
  }
}

}  // namespace tensord::cpu
