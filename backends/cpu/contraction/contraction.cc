#include "backends/cpu/contraction/contraction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/cache_line.h"
#include "backends/cpu/math/half_conversion.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// Rows, columns and a batch for each of the two operands' axes, and one cut a role.
constexpr size_t kMaxLoops = 2 * StridedCopy::kMaxAxes + kNumDotRoles;

// Results for each term of a small operand that is read in pieces: it is read from the nearest cache then, and to
// write the result in its order is worth more (docs/why/0014; `abcdef-dega-gfbc`).
constexpr double kResultsToScattered = 8;
constexpr int64_t kMostLinesBytes = int64_t{64} << 10;  // stay in any second cache beside the panels

bool IsOneAxisOfResult(const DotAxisList& axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    if (axes[i].strides[kDotResult] != axes[i - 1].strides[kDotResult] * axes[i - 1].size) return false;
  }
  return true;
}

// Tells whether rows of lhs lie side by side in the result: products write them as they are.
bool HoldsRows(const DotSpace& space) {
  const DotAxisList& rows = space.roles[kRows];
  return rows.empty() || (rows[0].strides[kDotResult] == 1 && IsOneAxisOfResult(rows));
}

// Tells whether an operand is read in runs as its lines go by in the order of the result, or is small beside the
// result.
bool IsReadInRuns(const DotSpace& space, DotSide side) {
  const DotAxisList& lines = space.roles[side == kLhs ? kRows : kColumns];
  const bool has_run =
      std::any_of(lines.begin(), lines.end(), [side](const DotAxis& axis) { return axis.strides[side] == 1; });
  if (!has_run || lines[0].strides[side] == 1) return true;
  const double others = static_cast<double>(space.Size(side == kLhs ? kColumns : kRows));
  return others >= kResultsToScattered * static_cast<double>(space.Size(kSummed));
}

// Orders rows by the innermost axis of the result, then by the innermost axis of lhs. There, panels of the first axis
// take one element of each cache line, and the next panels find the others in the cache. Returns no rows if panels
// cannot share cache lines in this way.
DotAxisList RowsByLines(const DotSpace& space, int64_t element_bytes) {
  const DotAxisList& rows = space.roles[kRows];
  if (rows.size() < 2) return {};
  DotAxisList ordered = {rows[0]};
  for (const DotAxis& axis : SortedBy(kLhs, {rows.begin() + 1, rows.end()})) ordered.push_back(axis);
  if (ordered[1].strides[kLhs] != 1) return {};
  const int64_t lines = ordered[0].size * space.Size(kSummed);
  const bool uses_lines =
      ordered[0].size * element_bytes >= kLineBytes && ordered[1].size * element_bytes >= kLineBytes;
  return uses_lines && lines * kLineBytes <= kMostLinesBytes ? ordered : DotAxisList{};
}

bool StartsResult(const DotAxisList& axes) { return !axes.empty() && axes[0].strides[kDotResult] == 1; }

size_t Bit(DotRole role) { return size_t{1} << role; }

// Returns the roles on which the place of an operand depends.
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
  if (plan.widens_in_tiles) {
    box.tiled = TiledGemm::PlanWidening(space, {operands[kLhs].dtype, operands[kRhs].dtype});
    return box;
  }
  box.tiled = TiledGemm::Plan(space, computed_);
  if (box.tiled.has_value()) return box;
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
  places_.partials = reserve([](const Box& box) { return box.tiled.has_value() ? 0 : box.products.partial_bytes(); });
  places_.result = scratch_bytes_;
  if (copies_result_) scratch_bytes_ += (result_copy_.dst_bytes() + 63) / 64 * 64;
  for (const Box& box : boxes_) {
    if (box.tiled.has_value()) workspace_bytes_ = std::max(workspace_bytes_, box.tiled->scratch_bytes());
  }
  if (!rounds_in_blocks_) return;
  blocks_offset_ = (workspace_bytes_ + 63) / 64 * 64;
  workspace_bytes_ = blocks_offset_ + slots() * boxes_[0].tiled->block_bytes();
}

absl::StatusOr<Contraction> Contraction::Create(const ConcreteType& lhs, const ConcreteType& rhs, const DotAxes& axes,
                                                DType result_dtype) {
  return Plan(ClassifyAxes(lhs.shape, rhs.shape, axes),
              {DotOperand{lhs.dtype, axes.conjugates_lhs}, DotOperand{rhs.dtype, axes.conjugates_rhs}}, result_dtype,
              !axes.result_permutation.empty());
}

absl::StatusOr<Contraction> Contraction::Create(const DotSpace& space, const std::array<DotOperand, 2>& operands,
                                                DType result_dtype) {
  return Plan(space, operands, result_dtype, /*is_permuted=*/false);
}

absl::StatusOr<Contraction> Contraction::Plan(DotSpace space, const std::array<DotOperand, 2>& read, DType result_dtype,
                                              bool is_permuted) {
  Contraction c;
  c.result_dtype_ = result_dtype;
  c.computed_ = kHalves.Contains(result_dtype) ? DType::kF32 : result_dtype;
  c.rounds_ = c.result_dtype_ != c.computed_;
  if (space.Size(kRows) == 0 || space.Size(kColumns) == 0 || space.Size(kBatch) == 0) return c;

  const bool is_complex = kComplexes.Contains(c.computed_);
  const bool is_sum = space.Size(kSummed) > 0;
  std::array<DotOperand, 2> operands;
  for (DotSide side : {kLhs, kRhs}) {
    operands[side] = {is_sum ? read[side].dtype : c.computed_, read[side].conjugates && is_complex && is_sum};
  }
  const bool converts = c.rounds_ || operands[kLhs].dtype != c.computed_;
  if (is_sum && c.PlanWhole(space, operands, converts)) return c;
  if (is_permuted || !HoldsRows(space)) c.PlaceResult(&space, &operands);
  RETURN_IF_ERROR(c.PlanBoxes(space, operands));
  c.PlaceScratch();
  return c;
}

bool Contraction::PlanWhole(const DotSpace& space, const std::array<DotOperand, 2>& operands, bool converts) {
  if (!converts) {
    std::optional<ModeProduct> mode =
        ModeProduct::Plan(space, computed_, operands[kLhs].conjugates, operands[kRhs].conjugates);
    if (mode.has_value()) {
      whole_ = *std::move(mode);
      return true;
    }
  }
  std::optional<LaneProduct> lanes;
  if (!converts && !kComplexes.Contains(computed_)) lanes = LaneProduct::Plan(space, computed_);
  if (lanes.has_value()) {
    scratch_bytes_ = lanes->scratch_bytes();
    whole_ = *std::move(lanes);
    return true;
  }
  std::optional<HalfVectorProduct> vectors = HalfVectorProduct::Plan(space, operands, result_dtype_);
  if (!vectors.has_value()) return false;
  scratch_bytes_ = vectors->scratch_bytes();
  whole_ = *std::move(vectors);
  return true;
}

void Contraction::PlaceResult(DotSpace* space, std::array<DotOperand, 2>* operands) {
  swaps_ = !space->roles[kRows].empty() && StartsResult(space->roles[kColumns]);
  const bool converts = rounds_ || (*operands)[kLhs].dtype != computed_;
  const auto is_written = [&](const DotSpace& of) {
    const bool is_read_in_runs = IsReadInRuns(of, kLhs) && IsReadInRuns(of, kRhs);
    const bool holds_matrices = HoldsRows(of) && IsOneAxisOfResult(of.roles[kColumns]);
    return is_read_in_runs && (holds_matrices || (!converts && TiledGemm::IsFastest(of, computed_)));
  };
  DotSpace in_order = swaps_ ? Swapped(*space) : *space;
  // Columns may be written in any order.
  DotSpace as_read = in_order;
  as_read.roles[kColumns] = SortedBy(kRhs, in_order.roles[kColumns]);
  for (DotSpace* written : {&in_order, &as_read}) {
    if (!is_written(*written)) continue;
    if (swaps_) std::swap((*operands)[kLhs], (*operands)[kRhs]);
    *space = std::move(*written);
    return;
  }
  DotSpace by_lines = in_order;
  by_lines.roles[kRows] = RowsByLines(in_order, SizeOf(computed_));
  if (!converts && !by_lines.roles[kRows].empty() && IsReadInRuns(by_lines, kRhs) &&
      TiledGemm::IsFastest(by_lines, computed_)) {
    if (swaps_) std::swap((*operands)[kLhs], (*operands)[kRhs]);
    *space = std::move(by_lines);
    return;
  }
  swaps_ = false;
  copies_result_ = true;
  absl::InlinedVector<CopyAxis, 8> copy;
  // In the order in which the operands are read.
  space->roles[kRows] = SortedBy(kLhs, space->roles[kRows]);
  space->roles[kColumns] = SortedBy(kRhs, space->roles[kColumns]);
  const DotSpace permuted = *space;
  LayResultDensely(space);
  for (DotRole role : {kRows, kColumns, kBatch}) {
    for (size_t i = 0; i < permuted.roles[role].size(); ++i) {
      const DotAxis& axis = permuted.roles[role][i];
      copy.push_back({axis.size, space->roles[role][i].strides[kDotResult], axis.strides[kDotResult]});
    }
    space->roles[role] = MergeAxes(space->roles[role]);
  }
  result_copy_ = StridedCopy(copy, SizeOf(result_dtype_));
}

// Plans a contraction of operands in 16-bit floats or F32, in one box.
bool Contraction::PlanOneOfHalves(const DotSpace& space, const std::array<DotOperand, 2>& operands) {
  if (!WidensInTiles(space, computed_, operands)) return false;
  TiledGemm tiled = TiledGemm::PlanWidening(space, {operands[kLhs].dtype, operands[kRhs].dtype});
  if (rounds_ && !(tiled.makes_whole_sums() && tiled.makes_pieces())) return false;
  rounds_in_blocks_ = std::exchange(rounds_, false);
  num_boxes_ = 1;
  boxes_.resize(1);
  boxes_[0].occurs = true;
  boxes_[0].tiled = std::move(tiled);
  return true;
}

absl::Status Contraction::PlanBoxes(const DotSpace& space, const std::array<DotOperand, 2>& operands) {
  if (PlanOneOfHalves(space, operands)) return absl::OkStatus();
  const DotPlan plan = PlanDot(space, computed_, operands, rounds_);
  if (!plan.fits_blas) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("dot_general: a size or stride of the matrices is beyond the 32 bits of BLAS: m=",
                               space.Size(kRows), ", n=", space.Size(kColumns), ", k=", space.Size(kSummed),
                               "; contract smaller parts"));
  }
  packs_ = plan.packs;

  const std::array<int64_t, kNumDotSides> element_bytes = {SizeOf(operands[kLhs].dtype), SizeOf(operands[kRhs].dtype),
                                                           SizeOf(result_dtype_)};
  std::array<DotCut, kNumDotRoles> cuts;
  size_t shorter = 0;
  num_boxes_ = 1;
  for (DotRole role : {kSummed, kRows, kColumns, kBatch}) {
    DotCut& cut = cuts[role];
    cut = CutAxes(plan.space.roles[role], plan.most[role]);
    if (cut.has_shorter_last) shorter |= Bit(role);
    for (size_t i = 0; i < cut.outer.size(); ++i) {
      Loop loop{role, cut.outer[i].size, cut.outer[i].strides, i == 0 && cut.has_shorter_last};
      for (size_t side = 0; side < kNumDotSides; ++side) loop.steps[side] *= element_bytes[side];
      loops_.push_back(loop);
      num_boxes_ *= loop.count;
    }
  }
  boxes_.resize(shorter + 1);
  for (size_t variant = 0; variant <= shorter; ++variant) {
    if ((variant & ~shorter) != 0) continue;
    DotSpace box;
    for (size_t role = 0; role < kNumDotRoles; ++role) {
      box.roles[role] = (variant >> role & 1) != 0 ? cuts[role].last : cuts[role].inner;
    }
    boxes_[variant] = MakeBox(std::move(box), plan, operands);
  }
  return absl::OkStatus();
}

void Contraction::RunTiled(const TiledGemm& tiled, const Position& position, std::array<const char*, 2> operands,
                           char* result, const Memory& memory, ThreadPool& pool) const {
  if (rounds_in_blocks_) return RunRounded(tiled, operands, result, memory, pool);
  const bool accumulates = !position.is_first_sum;
  if (memory.epilogue == nullptr || !position.is_last_sum) {
    return tiled.Run(operands[kLhs], operands[kRhs], result, memory.workspace, accumulates, pool);
  }
  const int64_t first = position.offsets[kDotResult] / SizeOf(result_dtype_);
  const auto finish = [&](GemmPiece piece) {
    piece.first += first;
    memory.epilogue->finish(piece);
  };
  const GemmEpilogue of_box = {.finish = finish, .blocks = memory.epilogue->blocks};
  tiled.Run(operands[kLhs], operands[kRhs], result, memory.workspace, accumulates, pool, &of_box);
}

// Runs a contraction of one box.
void Contraction::RunRounded(const TiledGemm& tiled, std::array<const char*, 2> operands, char* result,
                             const Memory& memory, ThreadPool& pool) const {
  const auto narrow = [this](const char* from, int64_t count, void* to) {
    NarrowToHalf(result_dtype_, reinterpret_cast<const float*>(from), static_cast<uint16_t*>(to), count);
  };
  const auto finish = [&](GemmPiece piece) {
    if (memory.epilogue != nullptr) {
      char* const block = memory.epilogue->blocks + piece.slot * block_bytes();
      narrow(piece.elements, piece.rows * piece.columns, block);  // a block is dense
      piece.elements = block;
      return memory.epilogue->finish(piece);
    }
    if (piece.elements_step == piece.rows && piece.first_step == piece.rows) {
      return narrow(piece.elements, piece.rows * piece.columns, result + piece.first * SizeOf(result_dtype_));
    }
    for (int64_t j = 0; j < piece.columns; ++j) {
      narrow(piece.elements + j * piece.elements_step * SizeOf(computed_), piece.rows,
             result + (piece.first + j * piece.first_step) * SizeOf(result_dtype_));
    }
  };
  const GemmEpilogue rounding = {.finish = finish, .blocks = memory.workspace + blocks_offset_};
  tiled.Run(operands[kLhs], operands[kRhs], nullptr, memory.workspace, /*accumulates=*/false, pool, &rounding);
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
  if (result != nullptr) result += position.offsets[kDotResult];
  char* const computed = rounds_ ? scratch + places_.rounded : result;
  if (box.tiled.has_value()) {
    RunTiled(*box.tiled, position, operands, computed, memory, pool);
  } else {
    box.products.Run(operands[kLhs], operands[kRhs], computed, scratch + places_.partials, !position.is_first_sum,
                     pool);
  }
  if (rounds_ && position.is_last_sum) box.rounded.Store(computed, result, pool);
}

void Contraction::RunBoxes(std::array<const char*, 2> operands, char* result, const Memory& memory,
                           ThreadPool& pool) const {
  std::array<int64_t, kMaxLoops> index;
  std::fill_n(index.begin(), loops_.size(), 0);
  Position filled;
  for (int64_t box = 0; box < num_boxes_ && !StopRequested(); ++box) {
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
    RunBox(now, operands, result, memory, pool);
    filled = now;
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (++index[i] < loops_[i].count) break;
      index[i] = 0;
    }
  }
}

bool Contraction::takes_epilogue() const {
  const auto is_tiled = [](const Box& box) {
    return !box.occurs || (box.tiled.has_value() && box.tiled->makes_pieces());
  };
  return !boxes_.empty() && !rounds_ && !copies_result_ && std::all_of(boxes_.begin(), boxes_.end(), is_tiled);
}

bool Contraction::makes_whole_sums() const {
  const auto cuts_sums = [](const Loop& loop) { return loop.role == kSummed && loop.count > 1; };
  const auto is_whole = [](const Box& box) { return !box.tiled.has_value() || box.tiled->makes_whole_sums(); };
  return std::none_of(loops_.begin(), loops_.end(), cuts_sums) && std::all_of(boxes_.begin(), boxes_.end(), is_whole);
}

int64_t Contraction::slots() const {
  int64_t slots = 1;
  for (const Box& box : boxes_) slots = std::max(slots, box.tiled.has_value() ? box.tiled->slots() : 1);
  return slots;
}

int64_t Contraction::block_bytes() const {
  int64_t bytes = 0;
  for (const Box& box : boxes_) bytes = std::max(bytes, box.tiled.has_value() ? box.tiled->block_bytes() : 0);
  return rounds_in_blocks_ ? (bytes / 2 + 63) / 64 * 64 : bytes;
}

void Contraction::Run(const void* lhs, const void* rhs, void* result, void* scratch, void* workspace, ThreadPool& pool,
                      const GemmEpilogue* epilogue) const {
  std::array<const char*, 2> operands = {static_cast<const char*>(lhs), static_cast<const char*>(rhs)};
  char* const to = static_cast<char*>(result);
  if (const auto* const mode = std::get_if<ModeProduct>(&whole_)) {
    return mode->Run(operands[kLhs], operands[kRhs], to, pool);
  }
  if (const auto* const lanes = std::get_if<LaneProduct>(&whole_)) {
    return lanes->Run(operands[kLhs], operands[kRhs], to, static_cast<char*>(scratch));
  }
  if (const auto* const vectors = std::get_if<HalfVectorProduct>(&whole_)) {
    return vectors->Run(operands[kLhs], operands[kRhs], to, static_cast<char*>(scratch), pool);
  }
  if (swaps_) std::swap(operands[kLhs], operands[kRhs]);
  const Memory memory = {static_cast<char*>(scratch), static_cast<char*>(workspace), epilogue};
  if (!copies_result_) return RunBoxes(operands, to, memory, pool);
  char* const in_order = memory.scratch + places_.result;
  RunBoxes(operands, in_order, memory, pool);
  pool.ParallelFor(result_copy_.num_tasks(), [&](int64_t task) { result_copy_.RunTask(task, in_order, to); });
}

}  // namespace tensord::cpu
