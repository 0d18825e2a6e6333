#include "backends/cpu/fused/task.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <optional>

#include "backends/cpu/layout/strided_copy_loops.h"
#include "backends/cpu/machine/streamed_stores.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kFusedRunsAhead = 6;  // that memory is asked for: short runs take less time than it takes to answer
// The points of rows between two looks whether the run is still wanted: about a millisecond.
constexpr int64_t kMostPointsOfRows = int64_t{1} << 20;

template <typename T>
int64_t BytesOf(size_t count) {
  return RoundUp(static_cast<int64_t>(count * sizeof(T)), 64);
}

TransposeTileFunction TransposeFor(int64_t element_bytes) {
  return GetStridedCopyLoops().widths[std::countr_zero(static_cast<uint64_t>(element_bytes))].tile;
}

}  // namespace

int64_t FusedTask::BytesOf(const FusedPlan& plan) {
  return plan.value_bytes + cpu::BytesOf<void*>(plan.places.size()) + cpu::BytesOf<AccessState>(plan.accesses.size()) +
         cpu::BytesOf<Cascade>(plan.folds.size());
}

FusedTask::FusedTask(const FusedPlan& plan, const KernelArgs& args, char* memory)
    : plan_(plan), args_(args), memory_(memory) {
  char* next = memory + plan.value_bytes;
  at_ = reinterpret_cast<void**>(next);
  next += cpu::BytesOf<void*>(plan.places.size());
  accesses_ = reinterpret_cast<AccessState*>(next);
  next += cpu::BytesOf<AccessState>(plan.accesses.size());
  folds_ = reinterpret_cast<Cascade*>(next);

  for (size_t p = 0; p < plan.places.size(); ++p) {
    const FusedPlace& place = plan.places[plan.places.id(p)];
    const bool is_constant = place.kind == FusedPlace::Kind::kConstant;
    at_[p] = (is_constant ? const_cast<char*>(plan.constants.data()) : memory) + place.offset;
  }
  const bool leaves_to_cache = args.pool->threads() > 1 && FitsLastCache(plan.touched_bytes);
  for (size_t i = 0; i < plan.accesses.size(); ++i) {
    const AccessId id = plan.accesses.id(i);
    const FusedAccess& access = plan.accesses[id];
    AccessState* const state = new (accesses_ + i) AccessState();
    PlaceAccess(id, 0);
    if (!access.may_stream || leaves_to_cache) continue;
    void* const result = args.results[static_cast<size_t>(access.result)];
    state->streams = std::find(args.operands.begin(), args.operands.end(), result) == args.operands.end();
    streams_ = streams_ || state->streams;
  }
  width_ = plan.space.width(false);
  RunLower(plan.uniform, 1);
  Run(plan.repeats);
}

FusedTask::~FusedTask() {
  if (streams_) FlushStreamed();
}

void FusedTask::PlaceAccess(AccessId id, int64_t group) {
  const FusedAccess& access = plan_.accesses[id];
  const int64_t offset = access.access.offset + plan_.space.GroupOffset(access.access.strides, group);
  AccessState& state = StateOf(id);
  if (access.operand >= 0) {
    const void* const operand = args_.operands[static_cast<size_t>(access.operand)];
    state.base = static_cast<char*>(const_cast<void*>(operand)) + offset * SizeOf(access.dtype);
  } else if (access.result >= 0) {
    state.base = static_cast<char*>(args_.results[static_cast<size_t>(access.result)]) + offset * SizeOf(access.dtype);
  } else {
    state.number = offset;
    for (size_t d = 0; d < args_.origin.size(); ++d) state.number += args_.origin[d] * access.access.strides[d];
  }
}

void FusedTask::RunLower(const std::vector<FusedStep>& steps, int64_t n) {
  begin_ = 0;
  n_ = n;
  Run(steps);
}

void FusedTask::StoreUniform() { RunLower(plan_.uniform_stores, 1); }

void FusedTask::StartGroup(int64_t group) {
  tail_ = plan_.space.is_tail(group);
  width_ = plan_.space.width(tail_);
  for (const AccessId id : plan_.moving_accesses) PlaceAccess(id, group);
  for (const PlaceId place : plan_.group_places) {
    At(place) = static_cast<char*>(args_.scratch) + group * plan_.group_bytes + plan_.places[place].offset;
  }
  if (!plan_.group_fetches.empty()) FetchGroup(group + 1);
}

// Has the steps that follow ask for the operands of a group, a few lines each.
void FusedTask::FetchGroup(int64_t group) {
  num_ahead_ = first_ahead_ = 0;
  if (group >= plan_.space.num_groups()) return;
  fetched_lines_ = plan_.group_fetched_lines;
  for (const AccessId id : plan_.group_fetches) {
    const FusedAccess& access = plan_.accesses[id];
    const int64_t first = access.access.offset + plan_.space.GroupOffset(access.access.strides, group);
    const int64_t points = plan_.space.scan_points() * plan_.space.width(plan_.space.is_tail(group));
    const int64_t bytes = SizeOf(access.dtype);
    const char* const operand = static_cast<const char*>(args_.operands[static_cast<size_t>(access.operand)]);
    if (num_ahead_ < kMaxAhead) ahead_[num_ahead_++] = {operand + first * bytes, operand + (first + points) * bytes};
  }
}

void FusedTask::StartFolds(const FusedStage& stage) {
  for (const FoldId f : stage.folds) {
    if (plan_.folds[f].is_one_run()) continue;
    new (folds_ + f.index) Cascade(plan_.folds[f].Start(width_, memory_ + plan_.fold_offsets[f]));
  }
}

void FusedTask::RunGroup() {
  for (const FusedStage& stage : plan_.stages) {
    for (const FoldId f : stage.finishes) {
      plan_.folds[f].Finish(width_, memory_ + plan_.fold_offsets[f], FoldOf(f), At(plan_.fold_places[f]));
    }
    RunLower(stage.kept, width_);
    RunLower(stage.stores, width_);
    if (stage.tile.empty()) continue;
    Run(stage.repeats);
    StartFolds(stage);
    RunTiles(stage.tile, 0, plan_.space.num_tiles());
    if (StopRequested()) return;
  }
}

void FusedTask::RunRows(int64_t begin, int64_t end) {
  const FusedRows& rows = *plan_.rows;
  for (int64_t group = begin; group < end;) {
    if (StopRequested()) return;
    int64_t count =
        std::min({end - group, plan_.space.GroupsInLine(group),
                  std::max<int64_t>(1, kMostPointsOfRows / std::max<int64_t>(1, plan_.space.scan_points()))});
    for (const AccessId id : plan_.moving_accesses) PlaceAccess(id, group);
    for (const FusedRows::Numbers& numbers : rows.numbers) {
      if (numbers.along == 0) count = std::min(count, FusedRows::kMaxNumberedRows);
    }
    for (const FusedRows::Numbers& numbers : rows.numbers) {
      const FusedAccess& access = plan_.accesses[numbers.access];
      const int64_t first = StateOf(numbers.access).number;
      At(numbers.place) = At(numbers.buffer);
      if (numbers.along == 0) {
        NumberRun(access.dtype, first, plan_.space.GroupStride(access.access.strides), count, At(numbers.buffer));
      } else if (group == begin) {
        NumberPoints(access.walks[0], access.dtype, first, 0, numbers.along, At(numbers.buffer));
      }
    }
    for (const FusedRows::Address& address : rows.addresses) {
      const bool is_access = address.access.index >= 0;
      At(address.place) = is_access ? StateOf(address.access).base : BaseOf(plan_.saved[address.saved]);
    }
    const bool streams =
        rows.streaming_function != nullptr && std::all_of(rows.streamed.begin(), rows.streamed.end(), [&](AccessId id) {
          const AccessState& state = StateOf(id);
          return state.streams && reinterpret_cast<uintptr_t>(state.base) % 64 == 0;
        });
    (streams ? rows.streaming_function : rows.function)(at_, count);
    group += count;
  }
}

char* FusedTask::BaseOf(const FusedSaved& saved) const {
  return saved.result.index >= 0 ? StateOf(saved.result).base : static_cast<char*>(at_[saved.place.index]);
}

void FusedTask::RunKept(int64_t stage_index) {
  const FusedStage& stage = plan_.stages[static_cast<size_t>(stage_index)];
  RunLower(plan_.leaves, width_);
  RunLower(stage.kept, width_);
  RunLower(stage.stores, width_);
}

void FusedTask::RunPart(int64_t stage_index, int64_t first_tile, int64_t last_tile, char* partials) {
  const FusedStage& stage = plan_.stages[static_cast<size_t>(stage_index)];
  RunLower(plan_.leaves, width_);
  Run(stage.repeats);
  StartFolds(stage);
  RunTiles(stage.tile, first_tile, last_tile);
  if (StopRequested()) return;
  for (const FoldId f : stage.folds) {
    plan_.folds[f].Partial(width_, FoldOf(f), partials + plan_.partial_offsets[f]);
  }
}

void FusedTask::JoinParts(int64_t stage, const char* partials) {
  for (const FoldId f : plan_.stages[static_cast<size_t>(stage)].folds) {
    plan_.folds[f].Join(width_, partials + plan_.partial_offsets[f], plan_.partial_bytes, plan_.num_parts,
                        memory_ + plan_.fold_offsets[f], At(plan_.fold_places[f]));
  }
}

void FusedTask::RunTiles(const std::vector<FusedStep>& steps, int64_t first_tile, int64_t last_tile) {
  if (steps.empty() || first_tile >= last_tile) return;
  const int64_t rows = plan_.space.tile_rows();
  const bool fetches_tiles = plan_.group_fetches.empty();
  if (fetches_tiles) {
    fetched_lines_ =
        plan_.fetched_bytes * plan_.space.tile_rows() * width_ / 64 / static_cast<int64_t>(steps.size()) + 1;
  }
  for (const FusedStride& stride : plan_.strides) {
    const FusedAccess& access = plan_.accesses[stride.access];
    At(stride.place) =
        StateOf(stride.access).base + *access.walks[0].RunStart(first_tile * rows, rows) * SizeOf(access.dtype);
  }
  for (int64_t tile = first_tile; tile < last_tile && !StopRequested(); ++tile) {
    const int64_t row = tile * rows;
    begin_ = row * width_;
    n_ = std::min(rows, plan_.space.scan_points() - row) * width_;
    if (fetches_tiles) num_ahead_ = first_ahead_ = 0;
    Run(steps);
    if (plan_.strides.empty() || tile + 1 == last_tile) continue;
    const size_t carry = plan_.space.TileCarry(tile);
    for (const FusedStride& stride : plan_.strides) {
      At(stride.place) = static_cast<char*>(At(stride.place)) + stride.steps[carry];
    }
  }
}

void FusedTask::RunPoints(int64_t begin, int64_t end) {
  const std::vector<FusedStep>& steps = plan_.stages[0].tile;
  while (begin < end) {
    begin_ = begin;
    n_ = std::min(end - begin, plan_.tile_elements);
    num_ahead_ = first_ahead_ = kMaxAhead;  // what follows in memory need not be what is asked for next
    Run(steps);
    begin += n_;
  }
}

// From then on the operand is addressed as if it were there from its point 0 on.
void FusedTask::PlaceOperand(const OperandRuns& moved, int64_t run, int64_t begin) {
  for (size_t i = 0; i < plan_.accesses.size(); ++i) {
    const AccessId id = plan_.accesses.id(i);
    const FusedAccess& access = plan_.accesses[id];
    if (access.operand != moved.operand) continue;
    StateOf(id).base = const_cast<char*>(moved.place) + (run * moved.step - begin) * SizeOf(access.dtype);
  }
}

// Tells whether each address of a run follows from that of the run before.
bool FusedTask::FindMoves(const PointRuns& points, const OperandRuns& moved, Moves* moves) const {
  if (points.runs < 3 || points.length > plan_.tile_elements) return false;
  for (const FusedStep& step : plan_.stages[0].tile) {
    const bool is_load = step.kind == FusedStepKind::kLoad, is_store = step.kind == FusedStepKind::kOpen;
    if (step.kind == FusedStepKind::kNumbers) return false;
    if (!is_load && !is_store) continue;
    const FusedAccess& access = plan_.accesses[step.access];
    if (is_store && step.buffer.index >= 0 && StateOf(step.access).streams) continue;  // stays in its buffer
    std::optional<int64_t> elements;
    if (is_load && access.operand == moved.operand) {
      elements = moved.step;
    } else if (access.is_linear) {
      elements = points.step;
    } else if (is_load && access.is_periodic) {
      if (points.step % access.period == 0) elements = 0;
    } else if (is_load && access.walks[0].RunStart(points.begin, points.length).has_value()) {
      elements = access.walks[0].Stride(points.begin, points.step, points.runs);
    }
    if (!elements.has_value() || moves->size() == moves->capacity()) return false;
    const int64_t bytes = SizeOf(access.dtype);
    const bool is_far = is_load && access.operand != moved.operand && *elements != 0;
    moves->push_back({step.out, *elements * bytes, is_far ? points.length * bytes : 0});
  }
  return true;
}

void FusedTask::RunPoints(const PointRuns& points, const OperandRuns& moved) {
  if (plan_.stages[0].tile.empty()) return;
  Moves moves;
  const bool follow = FindMoves(points, moved, &moves);
  const int64_t found = follow ? 1 : points.runs;
  for (int64_t run = 0; run < found; ++run) {
    const int64_t begin = points.begin + run * points.step;
    if (moved.operand >= 0) PlaceOperand(moved, run, begin);
    RunPoints(begin, begin + points.length);
  }
  const FusedRun* const code = plan_.placed.size() == 1 && plan_.placed[0].kind == FusedStepKind::kRun
                                   ? &plan_.runs[plan_.placed[0].run]
                                   : nullptr;
  for (int64_t run = found; run < points.runs; ++run) {
    begin_ += points.step;
    for (const Move& move : moves) {
      char* const place = static_cast<char*>(At(move.place)) + move.bytes;
      At(move.place) = place;
      // Runs are too short, and too far apart, for the processor to see the next ones.
      const char* const ahead = place + kFusedRunsAhead * move.bytes;
      for (int64_t at = 0; at < move.fetched_bytes; at += 64) __builtin_prefetch(ahead + at);
    }
    if (code != nullptr) {
      (MayStream(*code) ? code->streaming_function : code->function)(at_, n_);
    } else {
      Run(plan_.placed);
    }
  }
}

void FusedTask::Run(const std::vector<FusedStep>& steps) {
  for (const FusedStep& step : steps) {
    switch (step.kind) {
      case FusedStepKind::kFunction:
        step.function(At(step.a), step.b.index >= 0 ? At(step.b) : nullptr, At(step.out), n_);
        break;
      case FusedStepKind::kConvert:
        step.convert(At(step.a), At(step.out), n_);
        break;
      case FusedStepKind::kSelect:
        step.select(static_cast<const uint8_t*>(At(step.a)), At(step.b), At(step.c), At(step.out), n_);
        break;
      case FusedStepKind::kClamp:
        Clamp(step.dtype, {At(step.a), step.single_a}, At(step.b), {At(step.c), step.single_c}, At(step.out), n_);
        break;
      case FusedStepKind::kLoad:
      case FusedStepKind::kNumbers:
        Load(step);
        break;
      case FusedStepKind::kSaved: {
        const FusedSaved& saved = plan_.saved[step.saved];
        At(step.out) = BaseOf(saved) + begin_ * saved.element_bytes;
        break;
      }
      case FusedStepKind::kOpen:
        Open(step);
        break;
      case FusedStepKind::kClose:
        Close(step);
        break;
      case FusedStepKind::kCopy:
        if (n_ > 0) std::memcpy(At(step.out), At(step.a), static_cast<size_t>(n_ * step.element_bytes));
        break;
      case FusedStepKind::kRepeat: {
        const int64_t length = step.single_a ? 1 : width_;
        const int64_t n = step.over_tile ? std::min(plan_.tile_elements, plan_.space.scan_points() * width_) : width_;
        if (n > 0) RepeatRow(At(step.a), step.element_bytes, length, n, At(step.out));
        break;
      }
      case FusedStepKind::kFold: {
        const FoldId f = step.fold;
        char* const state = memory_ + plan_.fold_offsets[f];
        if (step.b.index >= 0) {
          plan_.folds[f].AddProducts(At(step.a), At(step.b), n_, state, FoldOf(f));
        } else {
          plan_.folds[f].Add(At(step.a), width_, n_ / width_, state, FoldOf(f));
        }
        break;
      }
      case FusedStepKind::kRun: {
        const FusedRun& run = plan_.runs[step.run];
        (MayStream(run) ? run.streaming_function : run.function)(at_, n_);
        break;
      }
    }
    if (first_ahead_ < num_ahead_) FetchAhead(fetched_lines_);
  }
}

void FusedTask::Load(const FusedStep& step) {
  const FusedAccess& access = plan_.accesses[step.access];
  AccessState& state = StateOf(step.access);
  const int64_t bytes = SizeOf(access.dtype);
  if (access.is_periodic) return LoadPeriodic(access, state, &At(step.out));
  const Walk& walk = access.walks[tail_];
  if (step.kind == FusedStepKind::kNumbers) {
    At(step.out) = At(step.buffer);
    NumberPoints(walk, access.dtype, state.number, begin_, n_, At(step.buffer));
  } else if (access.is_linear) {
    const char* const place = state.base + begin_ * bytes;
    At(step.out) = const_cast<char*>(place);
    if (access.is_fetched && num_ahead_ < kMaxAhead) {
      ahead_[num_ahead_++] = {place + n_ * bytes, place + 2 * n_ * bytes};
    }
  } else if (const std::optional<int64_t> start = walk.RunStart(begin_, n_); start.has_value()) {
    At(step.out) = state.base + *start * bytes;
  } else if (const FusedAccess::Crossing& crossing = access.crossings[tail_]; !crossing.tile_rows.empty()) {
    At(step.out) = At(step.buffer);
    TransposeFor(bytes)(state.base + begin_ / width_ * bytes, static_cast<char*>(At(step.buffer)),
                        crossing.tensor_rows.data(), crossing.tile_rows.data(), n_ / width_, width_);
  } else {
    At(step.out) = At(step.buffer);
    GatherPoints(walk, bytes, state.base, begin_, n_, At(step.buffer));
  }
}

// Streamed stores must be aligned.
bool FusedTask::MayStream(const FusedRun& run) const {
  if (run.streaming_function == nullptr) return false;
  return std::all_of(run.streamed.begin(), run.streamed.end(), [&](AccessId id) {
    const AccessState& state = StateOf(id);
    const char* const place = state.base + begin_ * SizeOf(plan_.accesses[id].dtype);
    return state.streams && reinterpret_cast<uintptr_t>(place) % 64 == 0;
  });
}

void FusedTask::FetchAhead(int64_t lines) {
  constexpr int64_t kLine = 64;  // of the cache
  while (lines > 0 && first_ahead_ < num_ahead_) {
    Ahead& ahead = ahead_[first_ahead_];
    for (; lines > 0 && ahead.next < ahead.end; --lines, ahead.next += kLine) __builtin_prefetch(ahead.next);
    if (ahead.next >= ahead.end) ++first_ahead_;
  }
}

void FusedTask::LoadPeriodic(const FusedAccess& access, AccessState& state, void** place) {
  const Walk& walk = access.walks[0];
  const int64_t bytes = SizeOf(access.dtype);
  const int64_t period = access.period;
  char* const copy = memory_ + access.periodic_offset;
  if (!state.is_built || state.built_base != state.base || state.built_number != state.number) {
    if (access.operand >= 0) {
      GatherPoints(walk, bytes, state.base, 0, period, copy);
    } else {
      NumberPoints(walk, access.dtype, state.number, 0, period, copy);
    }
    RepeatRow(copy, bytes, period, period + plan_.tile_elements, copy);
    state.is_built = true;
    state.built_base = state.base;
    state.built_number = state.number;
  }
  *place = copy + begin_ % period * bytes;
}

void FusedTask::Open(const FusedStep& step) {
  const FusedAccess& access = plan_.accesses[step.access];
  const AccessState& state = StateOf(step.access);
  const int64_t bytes = SizeOf(access.dtype);
  const Walk& walk = access.walks[tail_];
  if (state.streams && step.buffer.index >= 0) {
    At(step.out) = At(step.buffer);
  } else if (access.is_linear) {
    At(step.out) = state.base + begin_ * bytes;
  } else if (const std::optional<int64_t> start = walk.RunStart(begin_, n_); start.has_value()) {
    At(step.out) = state.base + *start * bytes;
  } else {
    At(step.out) = At(step.buffer);
  }
}

void FusedTask::Close(const FusedStep& step) {
  const FusedAccess& access = plan_.accesses[step.access];
  const AccessState& state = StateOf(step.access);
  const int64_t bytes = SizeOf(access.dtype);
  if (access.level == MicroLevel::kFull && (step.buffer.index < 0 || At(step.a) != At(step.buffer))) return;
  if (state.streams) {
    StreamCopy(At(step.a), state.base + begin_ * bytes, n_ * bytes);
  } else if (const FusedAccess::Crossing& crossing = access.crossings[tail_]; !crossing.tile_rows.empty()) {
    TransposeFor(bytes)(static_cast<const char*>(At(step.a)), state.base + begin_ / width_ * bytes,
                        crossing.tile_rows.data(), crossing.tensor_rows.data(), width_, n_ / width_);
  } else {
    ScatterPoints(access.walks[tail_], bytes, At(step.a), begin_, n_, state.base);
  }
}

}  // namespace tensord::cpu
