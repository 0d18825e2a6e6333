#include "backends/cpu/fused/make_plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backends/cpu/fused/folded_products.h"
#include "backends/cpu/fused/jit.h"
#include "backends/cpu/fused/lowering.h"
#include "backends/cpu/fused/rows.h"
#include "backends/cpu/fused/task.h"
#include "backends/cpu/fused/tile_registers.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"

namespace tensord::cpu {
namespace {

// Tiles of all that lives at once should fit the first-level cache; short ones cost more calls than they save misses.
// A LayerNorm with rows of 3 KiB takes twice as long in tiles half as long, and gains nothing by longer ones.
constexpr int64_t kTilesBytes = int64_t{24} << 10;
constexpr int64_t kMinTileBytes = 512;
constexpr int64_t kMaxTileBytes = 4096;
// Tiles of which nothing has to stay in the first-level cache: long enough for the machine's prefetchers, and still
// some for each thread. Half or twice as many: 1 % of a GELU.
constexpr int64_t kMaxDirectTileBytes = int64_t{64} << 10;
constexpr int64_t kDirectTiles = 16;
// Between neighbouring registers, so that the same element of many does not fall into one set of the cache.
constexpr int64_t kRegisterSkew = 320;

// The shortest row of a map that code goes through row by row: shorter rows cost it more than they cost tiles.
constexpr int64_t kMinRow = 8;
constexpr int64_t kMaxRowBytes = kMaxDirectTileBytes;

// 10 µs of a task: a fork and its tables cost a fraction of one. If there are plenty of tasks they are longer, as each
// waits for its streamed stores (LayerNorm of 768 x 8192: 2.75 ms of a thread where it was 3.1).
constexpr int64_t kTaskPicoseconds = 10'000'000;
constexpr int64_t kMaxFusedTasks = 1024;
constexpr int64_t kPlentyOfTasks = 64;
constexpr int64_t kMaxTaskGrowth = 4;
constexpr int64_t kCountedPoints = int64_t{1} << 40;  // of a group: more cost as much, and products of sizes fit
constexpr int64_t kFewGroups = 16;  // of which parts are tasks: more keep any threads busy as they are
// A group that is fetched while another one runs: a quarter of a common second cache. LayerNorm of 768 x 8192 took 3.2
// ms of a thread with it, 4.6 without.
constexpr int64_t kMaxFetchedGroupBytes = int64_t{128} << 10;
// Stages of split groups wait for each other: a split group makes a few tasks each.
constexpr int64_t kLeastSplit = 2;
constexpr int64_t kMaxFoldParts = 32;
// Tasks with more memory than the stack may hold get it from the kernel's scratch: as many as this is enough for, but
// not fewer than keep a few threads busy.
constexpr int64_t kTasksScratchBytes = int64_t{8} << 20;
constexpr int64_t kMinScratchTasks = 8;
constexpr int64_t kMaxScratchTasks = 64;

int64_t WidestElement(const MicroProgram& program) {
  int64_t widest = 1;
  for (const MicroInstruction& instruction : program.instructions) {
    if (instruction.level != MicroLevel::kUniform) widest = std::max(widest, SizeOf(instruction.dtype));
  }
  return widest;
}

// Tells whether nothing lies between the operands and the results but values in the machine's registers.
bool IsDirect(const FusedPlan& plan, int64_t registers) {
  const auto is_periodic = [](const FusedAccess& access) { return access.is_periodic; };
  return registers == 0 && !plan.runs.empty() && plan.repeats.empty() &&
         std::none_of(plan.accesses.begin(), plan.accesses.end(), is_periodic);
}

// Tells whether the operands' elements, or their products, are added up in place and nothing else is done.
bool FoldsDirectly(const FusedPlan& plan, int64_t registers) {
  if (registers != 0 || plan.space.is_map() || !plan.space.has_single_rows() || plan.folds.empty()) return false;
  constexpr DTypeSet kFolded = kIntegers | kLaneFloats;
  const auto is_read_or_folded = [](const FusedStep& step) {
    return step.kind == FusedStepKind::kLoad || step.kind == FusedStepKind::kFold;
  };
  const auto is_plain = [&](const FusedStage& stage) {
    return std::all_of(stage.tile.begin(), stage.tile.end(), is_read_or_folded);
  };
  return std::all_of(plan.folds.begin(), plan.folds.end(),
                     [&](const FusedFold& fold) { return kFolded.Contains(fold.dtype()); }) &&
         std::all_of(plan.stages.begin(), plan.stages.end(), is_plain);
}

// Elements of a tile: of the widest type, with room for all registers and all that is read and written directly.
int64_t TileElements(const FusedPlan& plan, int64_t registers, int64_t widest, int64_t most_row_bytes) {
  if (IsDirect(plan, registers)) {
    const int64_t share = plan.space.scan_points() / kDirectTiles * widest;
    return std::clamp(share, kMaxTileBytes, kMaxDirectTileBytes) / widest / 16 * 16;
  }
  // A short row is one tile, so that it can be gone through in one piece of code.
  const FusedSpace& space = plan.space;
  if (!space.is_map() && space.has_single_rows() && space.scan_points() * widest <= most_row_bytes) {
    return std::max(kMinTileBytes / widest, (space.scan_points() + 15) / 16 * 16);
  }
  if (FoldsDirectly(plan, registers)) {
    const int64_t share = space.scan_points() / kDirectTiles * widest;
    return std::clamp(share, kMaxTileBytes, kMaxRunBytes) / widest / 16 * 16;
  }
  int64_t direct = 0;
  for (const FusedAccess& access : plan.accesses) {
    if (access.level == MicroLevel::kFull && access.is_linear) ++direct;
  }
  const int64_t live = std::max<int64_t>(1, registers + direct);
  return std::clamp(kTilesBytes / live, kMinTileBytes, kMaxTileBytes) / widest / 16 * 16;
}

// Places the state of folds, which ends with the stage, from `begin` of the task's memory on; returns its size.
int64_t LayOutFolds(FusedPlan* plan, int64_t begin) {
  plan->fold_offsets.assign(plan->folds.size(), 0);
  plan->partial_offsets.assign(plan->folds.size(), 0);
  int64_t most = 0;
  for (const FusedStage& stage : plan->stages) {
    int64_t bytes = 0, partial_bytes = 0;
    for (const FoldId f : stage.folds) {
      plan->fold_offsets[f] = begin + bytes;
      bytes += RoundUp(plan->folds[f].state_bytes(), 64);
      plan->partial_offsets[f] = partial_bytes;
      partial_bytes += plan->folds[f].partial_bytes();
    }
    most = std::max(most, bytes);
    plan->partial_bytes = std::max(plan->partial_bytes, partial_bytes);
  }
  return most;
}

// Places everything in the task's memory, and in the group's where it is split.
void LayOut(FusedPlan* plan, int64_t registers, int64_t widest) {
  int64_t bytes = 0;
  const auto take = [&](int64_t size) {
    const int64_t offset = bytes;
    bytes += RoundUp(size, 64);
    return offset;
  };
  const int64_t register_bytes = RoundUp(plan->tile_elements * widest, 64) + kRegisterSkew;
  const int64_t first_register = take(registers * register_bytes);
  for (size_t p = 0; p < plan->places.size(); ++p) {
    const PlaceId id = plan->places.id(p);
    FusedPlace& place = plan->places[id];
    if (place.kind == FusedPlace::Kind::kRegister) place.offset = first_register + place.offset * register_bytes;
    if (place.kind == FusedPlace::Kind::kTask) place.offset = take(place.bytes);
    if (place.kind != FusedPlace::Kind::kGroup) continue;
    place.offset = plan->group_bytes;
    plan->group_bytes += RoundUp(place.bytes, 64);
    plan->group_places.push_back(id);
  }
  for (FusedAccess& access : plan->accesses) {
    if (!access.is_periodic) continue;
    access.periodic_offset = take((access.period + plan->tile_elements) * SizeOf(access.dtype));
  }
  plan->value_bytes = bytes + LayOutFolds(plan, bytes);
  plan->task_bytes = FusedTask::BytesOf(*plan);
}

// Long tiles read memory as the machine's own prefetchers like it.
void LeaveToTheMachine(FusedPlan* plan) {
  for (FusedAccess& access : plan->accesses) access.is_fetched = false;
  plan->fetched_bytes = 0;
}

// If several groups fit the cache, the next one is fetched. The steps of all stages leave more time for it than those
// of the first stage, which reads the operands, and lines asked for faster than memory answers are dropped.
void FetchNextGroups(FusedPlan* plan) {
  const FusedSpace& space = plan->space;
  if (space.is_map() || plan->is_split) return;
  int64_t bytes = 0;
  std::vector<AccessId> fetches;
  for (size_t i = 0; i < plan->accesses.size(); ++i) {
    const AccessId id = plan->accesses.id(i);
    FusedAccess& access = plan->accesses[id];
    if (!access.is_fetched) continue;
    if (!space.DependsOnGroup(access.access.strides)) {
      access.is_fetched = false;
      plan->fetched_bytes -= SizeOf(access.dtype);
      continue;
    }
    const bool is_new = std::none_of(fetches.begin(), fetches.end(), [&](AccessId other) {
      const FusedAccess& fetched = plan->accesses[other];
      return fetched.operand == access.operand && fetched.access.offset == access.access.offset;
    });
    if (!is_new) continue;
    fetches.push_back(id);
    bytes += space.scan_points() * space.width(false) * SizeOf(access.dtype);
  }
  if (fetches.empty() || bytes > kMaxFetchedGroupBytes) return;
  int64_t steps = 0;
  for (const FusedStage& stage : plan->stages) steps += space.num_tiles() * static_cast<int64_t>(stage.tile.size());
  for (FusedAccess& access : plan->accesses) access.is_fetched = false;
  plan->fetched_bytes = 0;
  plan->group_fetches = std::move(fetches);
  plan->group_fetched_lines = CeilDiv(bytes / 64, std::max<int64_t>(1, steps)) + 1;
}

// If tiles lie in rows, their addresses follow from one another, and need not be found for each.
void StepAlongRows(FusedPlan* plan) {
  const FusedSpace& space = plan->space;
  if (!space.has_tiles_in_rows() || space.num_tiles() == 0) return;
  std::vector<FusedStep>& tile = plan->stages[0].tile;
  const auto end = std::remove_if(tile.begin(), tile.end(), [&](const FusedStep& step) {
    if (step.kind != FusedStepKind::kLoad) return false;
    const FusedAccess& access = plan->accesses[step.access];
    if (access.is_linear || access.is_periodic || !space.IsAlongRows(access.access.strides)) return false;
    FusedStride stride{.place = step.out, .access = step.access, .steps = space.TileSteps(access.access.strides)};
    for (int64_t& elements : stride.steps) elements *= SizeOf(access.dtype);
    plan->strides.push_back(std::move(stride));
    return true;
  });
  tile.erase(end, tile.end());
}

// Keeps the steps of a tile that remain if addresses are there: no loads, and no stores that are through as it is.
void LeaveOutPlaces(FusedPlan* plan) {
  std::copy_if(plan->stages[0].tile.begin(), plan->stages[0].tile.end(), std::back_inserter(plan->placed),
               [](const FusedStep& step) {
                 const bool is_through = step.kind == FusedStepKind::kClose && step.buffer.index < 0;
                 return step.kind != FusedStepKind::kLoad && step.kind != FusedStepKind::kOpen && !is_through;
               });
}

// Returns the plan for tiles of the greatest size, of which the tiles' size follows.
absl::StatusOr<FusedPlan> DraftOf(const MicroProgram& program, const FusedSpace& space, JitIsa isa, JitOptions::Use use,
                                  int64_t widest) {
  FusedPlan draft{.space = space};
  draft.tile_elements = kMaxTileBytes / widest;
  RETURN_IF_ERROR(FusedLowering(program, space, false, false).Lower(&draft));
  // How sums are put together follows from the tiles, which must not follow from code.
  if (space.is_map()) FormRuns(isa, use, &draft);
  JoinFoldedProducts(&draft);
  return draft;
}

// Stages that read something.
int64_t CountReads(const FusedPlan& draft) {
  return std::count_if(draft.stages.begin(), draft.stages.end(),
                       [](const FusedStage& stage) { return !stage.tile.empty(); });
}

// Bytes of a point that are read and kept.
int64_t PointBytes(const FusedPlan& draft) {
  int64_t bytes = draft.kept_bytes;
  for (const FusedAccess& access : draft.accesses) {
    if (access.level == MicroLevel::kFull && access.operand >= 0) bytes += SizeOf(access.dtype);
  }
  return bytes;
}

void FindMovingAccesses(FusedPlan* plan) {
  for (size_t i = 0; i < plan->accesses.size(); ++i) {
    const AccessId id = plan->accesses.id(i);
    const FusedAccess& access = plan->accesses[id];
    const bool moves = access.level != MicroLevel::kUniform && plan->space.DependsOnGroup(access.access.strides);
    if (moves) plan->moving_accesses.push_back(id);
  }
}

// Cuts the work into tasks: of tiles, of parts of groups, of groups.
void CutTasks(int64_t group_cost, FusedPlan* plan) {
  const FusedSpace& space = plan->space;
  const int64_t groups = space.num_groups();
  if (space.is_map()) {
    const int64_t per_task = kTaskPicoseconds / std::max<int64_t>(1, plan->point_picoseconds);
    plan->items_per_task = std::max<int64_t>(1, CeilDiv(per_task, space.tile_rows()));
    plan->num_items = plan->stages[0].tile.empty() ? 0 : space.num_tiles();
  } else if (plan->is_split) {
    plan->num_items = groups * plan->num_parts;
  } else {
    plan->num_items = groups;
    plan->items_per_task = std::max(CeilDiv(kTaskPicoseconds, group_cost), CeilDiv(groups, kMaxFusedTasks));
  }
  // A task has to place its operands, and waits for its streamed stores; if there are plenty of tasks they are longer.
  if (!plan->is_split) {
    plan->items_per_task =
        std::clamp(plan->num_items / kPlentyOfTasks, plan->items_per_task, kMaxTaskGrowth * plan->items_per_task);
  }
  plan->needs_scratch = plan->task_bytes > kStackBytes;
  if (plan->needs_scratch) {
    const int64_t tasks = std::clamp(kTasksScratchBytes / plan->task_bytes, kMinScratchTasks, kMaxScratchTasks);
    plan->items_per_task = std::max(plan->items_per_task, CeilDiv(plan->num_items, tasks));
  }
}

// Rows of up to `most_row_bytes` are one tile.
absl::StatusOr<FusedPlan> PlanFor(const MicroProgram& program, JitIsa isa, const JitOptions& jit, FusedPoints asked,
                                  int64_t most_row_bytes = kMaxTileBytes) {
  FusedSpace space(program);
  const int64_t widest = WidestElement(program);
  ASSIGN_OR_RETURN(FusedPlan draft, DraftOf(program, space, isa, jit.use, widest));
  const int64_t draft_registers = AllocateRegisters(&draft);
  const int64_t tile_elements = TileElements(draft, draft_registers, widest, most_row_bytes);

  const int64_t reads = CountReads(draft);
  space.Cut(tile_elements, reads, PointBytes(draft));
  const int64_t points =
      std::clamp(space.scan_points() * space.width(false), int64_t{1}, kCountedPoints);  // of a group
  const int64_t group_cost = points * std::clamp<int64_t>(draft.point_picoseconds, 100, 1'000'000);
  const int64_t groups = space.num_groups();

  FusedPlan plan{.space = space};
  plan.tile_elements = tile_elements;
  const int64_t stage_cost = group_cost / std::max<int64_t>(1, reads);
  plan.is_split = !space.is_map() && groups > 0 && groups < kFewGroups && space.num_tiles() > 1 &&
                  stage_cost / kLeastSplit * groups >= kTaskPicoseconds;
  RETURN_IF_ERROR(FusedLowering(program, space, true, plan.is_split).Lower(&plan));
  FindMovingAccesses(&plan);
  if (FoldsDirectly(draft, draft_registers)) LeaveToTheMachine(&plan);
  FetchNextGroups(&plan);
  if (plan.is_split) {
    plan.num_parts = std::clamp(stage_cost / kTaskPicoseconds, int64_t{2}, std::min(kMaxFoldParts, space.num_tiles()));
  }
  for (FusedFold& fold : plan.folds) {
    fold.Plan(space.width(false), space.tile_rows(), CeilDiv(space.num_tiles(), plan.num_parts), plan.num_parts);
  }
  if (!FormRows(isa, jit.use, &plan)) {
    JoinFoldedProducts(&plan);
    FormRuns(isa, jit.use, &plan);
  }
  const int64_t registers = AllocateRegisters(&plan);
  if (asked == FusedPoints::kTiles) {
    StepAlongRows(&plan);
  } else {
    LeaveOutPlaces(&plan);
  }
  LayOut(&plan, registers, widest);
  CutTasks(group_cost, &plan);
  return plan;
}

// The operations that code must save to be worth the time of making it.
constexpr int64_t kMinJittedOps = 4096;

bool IsWorthCode(const MicroProgram& program, JitOptions::Use use) {
  if (use != JitOptions::Use::kWhereItPays) return use == JitOptions::Use::kAlways;
  const int64_t points = program.num_points(MicroLevel::kFull);
  return points > 0 &&
         points >= kMinJittedOps / std::max<int64_t>(1, static_cast<int64_t>(program.instructions.size()));
}

// A map of which some operands are one element for a whole row along the first axis, or lie apart from row to row.
bool IsMapOfRows(const MicroProgram& program) {
  if (program.axes.size() < 2 || program.has_reduced_axes()) return false;
  const int64_t row = program.axes[0].size;
  const auto fits = [&](const MicroInstruction& instruction) {
    if (instruction.kind == MicroKind::kReduce || row * SizeOf(instruction.dtype) > kMaxRowBytes) return false;
    if (instruction.kind != MicroKind::kLoad || instruction.level == MicroLevel::kUniform) return true;
    return instruction.access.strides[0] == 0 || instruction.access.strides[0] == 1;
  };
  const auto is_element = [](const MicroInstruction& instruction) {
    return instruction.kind == MicroKind::kLoad && instruction.level != MicroLevel::kUniform &&
           instruction.access.strides[0] == 0;
  };
  const auto& all = program.instructions;
  return row >= kMinRow && program.num_points(MicroLevel::kFull) > row && std::all_of(all.begin(), all.end(), fits) &&
         std::any_of(all.begin(), all.end(), is_element);
}

// The same with rows gone through like reduced ones: once read, such an element stays in a register.
MicroProgram InRows(MicroProgram program) {
  program.axes[0].is_reduced = true;
  return program;
}

// Tells whether each result that is too big for the cache goes past it.
bool StreamsAll(const FusedPlan& plan) {
  const auto may_stream = [](const FusedAccess& access) { return access.may_stream; };
  return std::count_if(plan.accesses.begin(), plan.accesses.end(), may_stream) ==
         static_cast<std::ptrdiff_t>(plan.rows->streamed.size());
}

}  // namespace

absl::StatusOr<FusedPlan> MakeFusedPlan(const MicroProgram& program, const JitOptions& asked, FusedPoints points) {
  const JitIsa isa = IsWorthCode(program, asked.use) ? BestJitIsa() : JitIsa::kNone;
  JitOptions jit = asked;
  // Short runs gain by code whatever it computes: it writes results where they belong at once.
  if (points == FusedPoints::kAnywhere && isa != JitIsa::kNone) jit.use = JitOptions::Use::kAlways;
  if (isa != JitIsa::kNone && points == FusedPoints::kTiles && IsMapOfRows(program)) {
    ASSIGN_OR_RETURN(FusedPlan rows, PlanFor(InRows(program), isa, jit, points, kMaxRowBytes));
    if (rows.rows && StreamsAll(rows) && CompileFused(isa, jit.protect, &rows)) return rows;
  }
  ASSIGN_OR_RETURN(FusedPlan plan, PlanFor(program, isa, jit, points));
  if (isa == JitIsa::kNone || CompileFused(isa, jit.protect, &plan)) return plan;
  return PlanFor(program, JitIsa::kNone, jit, points);
}

}  // namespace tensord::cpu
