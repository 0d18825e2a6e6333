#include "backends/cpu/fused/lowering.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "engine/base/refusal.h"

namespace tensord::cpu {
namespace {

// The bytes of values kept for later stages: more goes through memory.
constexpr int64_t kKeptBytes = int64_t{1} << 20;
constexpr int64_t kFetchedBytes = int64_t{1} << 20;
constexpr int64_t kPeriodicBytes = int64_t{8} << 10;

bool IsAt(MicroLevel level, const MicroAxis& axis) {
  return level == MicroLevel::kFull || (level == MicroLevel::kKept && !axis.is_reduced);
}

MicroAccess DenseAccess(const MicroProgram& program, MicroLevel level) {
  MicroAccess access;
  int64_t stride = 1;
  for (const MicroAxis& axis : program.axes) {
    access.strides.push_back(IsAt(level, axis) ? stride : 0);
    if (IsAt(level, axis)) stride *= axis.size;
  }
  return access;
}

DType ComputedDType(const MicroProgram& program, const MicroInstruction& instruction) {
  const int32_t first = instruction.operands[0];
  return first >= 0 ? program.instructions[static_cast<size_t>(first)].dtype : instruction.dtype;
}

absl::Status Unsupported(const MicroProgram& program, const MicroInstruction& instruction) {
  return Refuse(Refusal::kUnsupportedOnDevice,
                absl::StrCat("the CPU has no kernel for ", Def(instruction.op).name, " on ",
                             Name(ComputedDType(program, instruction)), " in a fused instruction"));
}

}  // namespace

FusedLowering::FusedLowering(const MicroProgram& program, const FusedSpace& space, bool is_cut, bool is_split)
    : program_(program), space_(space), is_cut_(is_cut), is_split_(is_split) {}

MicroLevel FusedLowering::LevelOf(int32_t value) const {
  const MicroLevel level = At(value).level;
  if (level == MicroLevel::kFull && IsTheSameAlongRows(value)) return MicroLevel::kKept;
  return space_.is_map() && level == MicroLevel::kKept ? MicroLevel::kFull : level;
}

// Returns true for a leaf that is one element for each row, if rows are reduced one by one.
bool FusedLowering::IsTheSameAlongRows(int32_t value) const {
  const MicroInstruction& leaf = At(value);
  if (space_.is_map() || !space_.has_single_rows() || !results_[static_cast<size_t>(value)].empty()) return false;
  if (leaf.kind != MicroKind::kLoad && leaf.kind != MicroKind::kIota) return false;
  for (size_t d = 0; d < program_.axes.size(); ++d) {
    if (program_.axes[d].is_reduced && leaf.access.strides[d] != 0) return false;
  }
  return true;
}

bool FusedLowering::IsLeaf(const MicroInstruction& instruction) {
  return instruction.kind == MicroKind::kLoad || instruction.kind == MicroKind::kIota ||
         instruction.kind == MicroKind::kConstant;
}

void FusedLowering::FindLive() {
  const size_t count = program_.instructions.size();
  live_.assign(count, false);
  results_.assign(count, {});
  for (size_t r = 0; r < program_.results.size(); ++r) {
    const size_t value = static_cast<size_t>(program_.results[r].value);
    live_[value] = true;
    results_[value].push_back(static_cast<int32_t>(r));
  }
  for (size_t v = count; v-- > 0;) {
    if (!live_[v]) continue;
    for (int32_t operand : program_.instructions[v].operands) {
      if (operand >= 0) live_[static_cast<size_t>(operand)] = true;
    }
  }
}

PlaceId FusedLowering::AddPlace(FusedPlace::Kind kind, int64_t element_bytes, int64_t elements) {
  return plan_->places.Add({.kind = kind, .element_bytes = element_bytes, .bytes = element_bytes * elements});
}

int64_t FusedLowering::TouchedBytes(const MicroAccess& access, DType dtype) const {
  int64_t bytes = SizeOf(dtype);
  for (size_t d = 0; d < program_.axes.size(); ++d) {
    if (access.strides[d] != 0) bytes *= program_.axes[d].size;
  }
  return bytes;
}

AccessId FusedLowering::AddAccess(const MicroAccess& access, MicroLevel level, DType dtype, int32_t operand,
                                  int32_t result) {
  FusedAccess added{.level = level, .dtype = dtype, .operand = operand, .result = result, .access = access};
  if (level == MicroLevel::kFull) {
    // Before the cut the walk of a map and of single rows is known, and otherwise taken to be scattered.
    const bool known = is_cut_ || space_.is_map() || space_.has_single_rows();
    for (const bool tail : {false, true}) {
      if (known) added.walks[tail] = space_.GroupWalk(access.strides, tail);
    }
    const bool has_tail = space_.width(true) != space_.width(false);
    added.is_linear = known && added.walks[0].is_linear() && (!has_tail || added.walks[1].is_linear());
    added.is_fetched = operand >= 0 && added.is_linear && program_.num_points(level) * SizeOf(dtype) > kFetchedBytes;
    for (const bool tail : {false, true}) added.crossings[tail] = CrossingOf(added.walks[tail], tail);
    const int64_t points = space_.scan_points() * space_.width(false);
    const bool depends_on_group = space_.DependsOnGroup(access.strides);
    added.period = added.walks[0].period();
    // Numbers that are the same in every group.
    if (added.period == 0 && operand < 0 && !depends_on_group) added.period = points;
    added.is_periodic = known && !has_tail && result < 0 && added.period > 0 &&
                        added.period * SizeOf(dtype) <= kPeriodicBytes &&
                        (!depends_on_group || points / 8 > added.period + plan_->tile_elements);
  } else if (level == MicroLevel::kKept) {
    for (const bool tail : {false, true}) added.walks[tail] = space_.BoxWalk(access.strides, tail);
    added.is_linear = space_.has_single_rows();
  } else {
    added.is_linear = true;
  }
  if (added.is_fetched) plan_->fetched_bytes += SizeOf(dtype);
  if (operand >= 0 || result >= 0) plan_->touched_bytes += TouchedBytes(access, dtype);
  return plan_->accesses.Add(std::move(added));
}

FusedAccess::Crossing FusedLowering::CrossingOf(const Walk& walk, bool tail) const {
  FusedAccess::Crossing crossing;
  const int64_t width = space_.width(tail);
  const absl::Span<const Walk::Axis> axes = walk.axes();
  if (!is_cut_ || width == 1 || axes.size() != 2 || axes[0].size != width || axes[1].stride != 1) return crossing;
  if (axes[0].stride == 1) return crossing;
  for (int64_t k = 0; k < width; ++k) crossing.tensor_rows.push_back(k * axes[0].stride);
  for (int64_t r = 0; r < space_.tile_rows(); ++r) crossing.tile_rows.push_back(r * width);
  return crossing;
}

bool FusedLowering::NeedsBuffer(const FusedAccess& access) const {
  return access.result >= 0 ? !access.is_linear || access.may_stream : !access.is_linear && !access.is_periodic;
}

absl::Status FusedLowering::Lower(FusedPlan* plan) {
  plan_ = plan;
  const size_t count = program_.instructions.size();
  const int32_t num_stages = program_.num_stages();
  place_.assign(count, {});
  row_.assign(count, {});
  tile_.assign(count, {});
  repeated_.assign(count, -1);
  plan_->stages.resize(static_cast<size_t>(num_stages));
  FindLive();
  AddResults();
  FindStages();
  absl::Status status = LowerUniform();
  for (int32_t stage = 0; stage < num_stages && status.ok(); ++stage) {
    status = LowerKept(stage);
    if (status.ok()) status = LowerTile(stage);
  }
  return status;
}

void FusedLowering::AddResults() {
  for (size_t r = 0; r < program_.results.size(); ++r) {
    const int32_t value = program_.results[r].value;
    const MicroLevel level = LevelOf(value);
    stores_.push_back(AddAccess(DenseAccess(program_, level), level, At(value).dtype, -1, static_cast<int32_t>(r)));
    const int64_t bytes = program_.num_points(level) * SizeOf(At(value).dtype);
    FusedAccess& access = plan_->accesses.back();
    access.may_stream = level == MicroLevel::kFull && access.is_linear && bytes >= StreamedResultBytes();
  }
}

// Memory reused for each group stays in the cache, memory of results does not. Results lend theirs if each group has
// memory of its own anyway, or if the kept values are too large for the cache.
FusedStages FusedLowering::StagesWith(bool is_large) const {
  FusedStagesRequest request{.is_live = live_, .is_large = is_large};
  for (size_t v = 0; v < live_.size(); ++v) request.is_full.push_back(IsFull(static_cast<int32_t>(v)));
  const bool keeps_apart = is_split_ || space_.num_groups() == 1;
  for (const AccessId store : stores_) {
    const FusedAccess& access = plan_->accesses[store];
    request.lends_memory.push_back(access.is_linear && (is_large || (keeps_apart && !access.may_stream)));
  }
  return FindFusedStages(program_, request);
}

void FusedLowering::FindStages() {
  stages_ = StagesWith(false);
  const int64_t points = space_.scan_points() * space_.width(false);  // of a group
  const int64_t together = is_split_ ? space_.num_groups() : 1;
  if (is_cut_ && stages_.own_bytes() > 0 &&
      points > kKeptBytes / stages_.own_bytes() / std::max<int64_t>(1, together)) {
    stages_ = StagesWith(true);
  }
  plan_->kept_bytes = stages_.own_bytes();
  for (const FusedStages::Slot& slot : stages_.slots) {
    FusedSaved saved{.element_bytes = slot.element_bytes};
    if (slot.result >= 0) {
      saved.result = stores_[static_cast<size_t>(slot.result)];
    } else {
      saved.place = AddPlace(OwnKind(), slot.element_bytes, points);
    }
    plan_->saved.Add(saved);
  }
  for (const SavedId slot : stages_.slot) {
    if (slot.index < 0 || plan_->saved[slot].result.index < 0) continue;
    plan_->accesses[plan_->saved[slot].result].may_stream = false;
  }
}

absl::Status FusedLowering::LowerUniform() {
  for (size_t v = 0; v < live_.size(); ++v) {
    const int32_t value = static_cast<int32_t>(v);
    const MicroInstruction& instruction = At(value);
    if (!live_[v] || LevelOf(value) != MicroLevel::kUniform) continue;
    if (IsLeaf(instruction)) {
      LowerLeaf(value, MicroLevel::kUniform, &plan_->uniform);
    } else {
      place_[v] = AddPlace(FusedPlace::Kind::kTask, SizeOf(instruction.dtype), 1);
      const absl::Status status = Compute(value, MicroLevel::kUniform, 0, place_[v], &plan_->uniform);
      if (!status.ok()) return status;
    }
    StoreLowerLevels(value, &plan_->uniform_stores);
  }
  return absl::OkStatus();
}

absl::Status FusedLowering::LowerKept(int32_t stage_index) {
  FusedStage& stage = plan_->stages[static_cast<size_t>(stage_index)];
  for (size_t v = 0; v < live_.size(); ++v) {
    const int32_t value = static_cast<int32_t>(v);
    const MicroInstruction& instruction = At(value);
    if (!live_[v] || LevelOf(value) != MicroLevel::kKept || instruction.stage != stage_index) continue;
    if (instruction.kind == MicroKind::kReduce) continue;  // it is there when its fold is finished
    if (IsLeaf(instruction)) {
      LowerLeaf(value, MicroLevel::kKept, is_split_ ? &plan_->leaves : &stage.kept);
    } else {
      place_[v] = AddPlace(OwnKind(), SizeOf(instruction.dtype), space_.width(false));
      const absl::Status status = Compute(value, MicroLevel::kKept, stage_index, place_[v], &stage.kept);
      if (!status.ok()) return status;
    }
  }
  for (size_t v = 0; v < live_.size(); ++v) {
    const int32_t value = static_cast<int32_t>(v);
    if (live_[v] && LevelOf(value) == MicroLevel::kKept && At(value).stage == stage_index)
      StoreLowerLevels(value, &stage.stores);
  }
  return absl::OkStatus();
}

absl::Status FusedLowering::LowerTile(int32_t stage_index) {
  FusedStage& stage = plan_->stages[static_cast<size_t>(stage_index)];
  for (size_t v = 0; v < live_.size(); ++v) {
    if (IsFull(static_cast<int32_t>(v))) place_[v] = {};
  }
  for (size_t v = 0; v < live_.size(); ++v) {
    const int32_t value = static_cast<int32_t>(v);
    const MicroInstruction& instruction = At(value);
    if (!live_[v]) continue;
    if (instruction.kind == MicroKind::kReduce && instruction.stage == stage_index + 1) {
      FusedFold fold(instruction.reduce, instruction.dtype);
      if (!fold.is_supported()) return Unsupported(program_, instruction);
      const FoldId id = plan_->folds.Add(fold);
      place_[v] = AddPlace(OwnKind(), SizeOf(instruction.dtype), space_.width(false));
      const PlaceId a = ArrayOf(instruction.operands[0], MicroLevel::kFull, stage_index, &stage.tile);
      stage.tile.push_back({.kind = FusedStepKind::kFold, .a = a, .fold = id});
      stage.folds.push_back(id);
      plan_->stages[static_cast<size_t>(stage_index) + 1].finishes.push_back(id);
      plan_->fold_places.Add(place_[v]);
      plan_->point_picoseconds += 150;
      continue;
    }
    if (IsLeaf(instruction) || !stages_.Computes(stage_index, v)) continue;
    const bool is_result = !results_[v].empty() && instruction.stage == stage_index;
    PlaceId out;
    if (is_result) {
      const AccessId access = stores_[static_cast<size_t>(results_[v][0])];
      const bool buffered = NeedsBuffer(plan_->accesses[access]);
      out = AddPlace(FusedPlace::Kind::kMoving, SizeOf(instruction.dtype), 0);
      const PlaceId buffer = buffered ? AddPlace(FusedPlace::Kind::kRegister, SizeOf(instruction.dtype), 0) : PlaceId();
      const absl::Status status = Compute(value, MicroLevel::kFull, stage_index, out, &stage.tile);
      if (!status.ok()) return status;
      const FusedStep open{.kind = FusedStepKind::kOpen, .out = out, .buffer = buffer, .access = access};
      stage.tile.insert(stage.tile.end() - 1, open);
      stage.tile.push_back({.kind = FusedStepKind::kClose, .a = out, .buffer = buffer, .access = access});
      place_[v] = out;
      StoreFull(value, stage_index);
      if (stages_.slot[v].index >= 0 && plan_->saved[stages_.slot[v]].result != access) {
        const PlaceId copy = AddPlace(FusedPlace::Kind::kMoving, SizeOf(instruction.dtype), 0);
        stage.tile.push_back({.kind = FusedStepKind::kSaved, .out = copy, .saved = stages_.slot[v]});
        stage.tile.push_back(Copy(out, copy, SizeOf(instruction.dtype)));
      }
    } else {
      const bool is_saved = stages_.slot[v].index >= 0;
      const auto kind = is_saved ? FusedPlace::Kind::kMoving : FusedPlace::Kind::kRegister;
      out = AddPlace(kind, SizeOf(instruction.dtype), 0);
      if (is_saved) stage.tile.push_back({.kind = FusedStepKind::kSaved, .out = out, .saved = stages_.slot[v]});
      const absl::Status status = Compute(value, MicroLevel::kFull, stage_index, out, &stage.tile);
      if (!status.ok()) return status;
      place_[v] = out;
    }
    plan_->point_picoseconds += 150 * ComputingCost(program_, instruction);
  }
  for (size_t v = 0; v < live_.size(); ++v) {
    const int32_t value = static_cast<int32_t>(v);
    if (stage_index == 0 && IsFull(value) && IsLeaf(At(value))) StoreFull(value, stage_index);
  }
  return absl::OkStatus();
}

}  // namespace tensord::cpu
