#ifndef TENSORD_BACKENDS_CPU_FUSED_PLAN_H_
#define TENSORD_BACKENDS_CPU_FUSED_PLAN_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/elementwise/convert.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/select_clamp.h"
#include "backends/cpu/fused/fold.h"
#include "backends/cpu/fused/ids.h"
#include "backends/cpu/fused/space.h"
#include "backends/cpu/fused/walk.h"
#include "backends/cpu/jit/compiler.h"
#include "backends/cpu/jit/options.h"
#include "backends/cpu/jit/rows.h"
#include "engine/base/id_vector.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// The most bytes of its thread's stack that a task may take.
inline constexpr int64_t kStackBytes = int64_t{60} << 10;

// The place of a value while a task runs: one entry of the task's table of addresses.
struct FusedPlace {
  enum class Kind : uint8_t {
    kRegister,  // of a tile; reused by other values of the stage
    kTask,      // in the task's memory, by itself
    kGroup,     // in the memory of a group that is split, by itself
    kConstant,  // in the plan's constants
    kMoving,    // wherever a step says
  };
  Kind kind = Kind::kMoving;
  int64_t element_bytes = 0;
  int64_t bytes = 0;   // kTask, kGroup
  int64_t offset = 0;  // into the task's memory, the group's, or the constants
};

// A tensor, or the integers, read or written along the points of a group, of its box, or at one element.
struct FusedAccess {
  MicroLevel level = MicroLevel::kFull;
  DType dtype = DType::kInvalid;
  int32_t operand = -1;  // what is read…
  int32_t result = -1;   // …or written; neither: integers
  MicroAccess access;
  std::array<Walk, 2> walks;  // of whole boxes, and of the tail
  bool is_linear = false;     // in every group
  // A box that lies across the memory order, with a contiguous scan: the starts of the tensor's rows, and of a tile's.
  // For whole boxes, and for the tail; empty for others.
  struct Crossing {
    std::vector<int64_t> tensor_rows;
    std::vector<int64_t> tile_rows;
  };
  std::array<Crossing, 2> crossings;
  // A walk that repeats itself after few points: they are laid out once, with a tile more, and read from there.
  bool is_periodic = false;
  int64_t period = 0;
  int64_t periodic_offset = 0;  // of that copy in the task's memory
  bool is_fetched = false;      // an operand that is too big for the cache
  bool may_stream = false;      // a result that is too big for the cache
};

enum class FusedStepKind : uint8_t {
  kFunction,  // function(a, b)
  kConvert,   // convert(a)
  kSelect,    // select(a, b, c)
  kClamp,     // Clamp(dtype, a, b, c)
  kLoad,      // sets `out` to where `access` lies, copied to `buffer` where it is scattered
  kNumbers,   // the integers of `access`
  kSaved,     // sets `out` to the kept value `saved`
  kOpen,      // sets `out` to where the result `access` goes, which may be `buffer`
  kClose,     // brings it there
  kCopy,      // a, as it is
  kRepeat,    // a row as long as the box, or one element, repeated over a tile or a row
  kFold,      // takes a, or the products of a and b, into `fold`
  kRun,       // the code of `run`
};

struct FusedStep {
  FusedStepKind kind = FusedStepKind::kFunction;
  DType dtype = DType::kInvalid;
  DType computed = DType::kInvalid;     // of operand a: kFunction, kConvert
  MicroKind micro = MicroKind::kUnary;  // what the instruction is, with its op or direction
  CoreOp op = CoreOp::kAdd;
  CompareDirection direction = {};
  bool single_a = false;     // kFunction, kClamp, kRepeat: a is one element
  bool single_b = false;     // kFunction
  bool single_c = false;     // kClamp
  bool over_tile = false;    // kRepeat
  int8_t element_bytes = 0;  // kCopy, kRepeat
  PlaceId a, b, c, out, buffer;
  AccessId access;
  SavedId saved;
  FoldId fold;
  RunId run;
  ElementwiseFunction function = nullptr;
  ConvertFunction convert = nullptr;
  SelectFunction select = nullptr;
};

// Elementwise steps in one piece of code.
struct FusedRun {
  JitProgram program;  // until there is code
  std::vector<PlaceId> reads;
  std::vector<PlaceId> writes;
  std::vector<AccessId> streamed;  // results too big for the cache
  JitFunction function = nullptr;
  JitFunction streaming_function = nullptr;  // where `streamed` may be streamed at once; null where nothing is
};

// Groups that are rows, in one piece of code for all stages.
struct FusedRows {
  // The place of a value in the first row of several: in an operand or a result, or among the kept values.
  struct Address {
    PlaceId place;
    AccessId access;
    SavedId saved;
  };
  // The integers that the rows of a call read: one for each row, or those along a row, the same in each.
  struct Numbers {
    PlaceId place;   // of the address
    PlaceId buffer;  // where they lie
    AccessId access;
    int64_t along = 0;  // how many along a row; 0: one for each
  };
  static constexpr int64_t kMaxNumberedRows = 512;  // of a call, where there is one for each

  JitRows rows;  // until there is code
  std::vector<Address> addresses;
  std::vector<Numbers> numbers;
  std::vector<AccessId> streamed;  // results too big for the cache
  JitRowsFunction function = nullptr;
  JitRowsFunction streaming_function = nullptr;  // as of a FusedRun
};

// An operand whose tiles are parts of its rows, read in place.
struct FusedStride {
  PlaceId place;
  AccessId access;
  std::vector<int64_t> steps;  // bytes from one tile to the next, by FusedSpace::TileCarry
};

// The place of values at all points of a group that later stages read again, one after the other.
struct FusedSaved {
  int64_t element_bytes = 0;
  AccessId result;  // in that result's memory, until the result is written…
  PlaceId place;    // …or at a place of its own
};

// The stage of a group: first its kept values, then its tiles. The folds of a stage become kept values of the next.
struct FusedStage {
  std::vector<FoldId> finishes;
  std::vector<FusedStep> kept;    // over the box
  std::vector<FusedStep> stores;  // of kept results
  std::vector<FusedStep> repeats;
  std::vector<FusedStep> tile;
  std::vector<FoldId> folds;
};

// A micro program as the tile interpreter runs it: loops from FusedSpace, vectorised functions on tiles that stay in
// the first-level cache. Constant after construction.
struct FusedPlan {
  FusedSpace space;
  IdVector<PlaceId, FusedPlace> places;
  IdVector<AccessId, FusedAccess> accesses;
  IdVector<FoldId, FusedFold> folds;
  IdVector<FoldId, PlaceId> fold_places;      // of the finished values
  IdVector<FoldId, int64_t> fold_offsets;     // of its state in the task's memory…
  IdVector<FoldId, int64_t> partial_offsets;  // …and among the partials of a part; both shared by the stages
  IdVector<SavedId, FusedSaved> saved;
  std::vector<FusedStep> uniform;  // once a task
  std::vector<FusedStep> uniform_stores;
  std::vector<FusedStep> repeats;
  std::vector<FusedStep> leaves;  // of groups that are split: kept values that every task reads by itself
  std::vector<FusedStage> stages;
  std::vector<FusedStride> strides;  // of maps; their tiles load nothing
  std::vector<FusedStep> placed;     // of maps for points anywhere: the tile's steps but those that find addresses
  IdVector<RunId, FusedRun> runs;
  std::optional<FusedRows> rows;        // instead of stages
  std::unique_ptr<const JitCode> code;  // of all runs, or of rows; null where there are none
  std::string constants;

  int64_t tile_elements = 0;
  int64_t point_picoseconds = 0;          // an estimate, of all stages
  int64_t fetched_bytes = 0;              // of a point, of the operands that are too big for the cache
  int64_t touched_bytes = 0;              // of all operands and results
  int64_t kept_bytes = 0;                 // of a point, from stage to stage, in memory of their own
  std::vector<AccessId> moving_accesses;  // those that lie elsewhere in each group
  // The accesses whose next group is fetched while a group runs, instead of the next tile, for small groups; and lines
  // a step.
  std::vector<AccessId> group_fetches;
  int64_t group_fetched_lines = 0;
  int64_t value_bytes = 0;  // of a task's memory, its tables apart
  int64_t task_bytes = 0;
  bool needs_scratch = false;  // for the tasks' memory: it does not fit the stack
  // True if there are few groups: parts of each are folded by themselves and joined between stages.
  bool is_split = false;
  int64_t num_parts = 1;              // of the tiles of a group
  int64_t partial_bytes = 0;          // of the folds of a part
  int64_t group_bytes = 0;            // of what the parts of a group share
  std::vector<PlaceId> group_places;  // that lie there
  // The items of tasks: tiles of a map, else groups or their parts.
  int64_t num_items = 0;
  int64_t items_per_task = 1;

  int64_t num_tasks() const { return (num_items + items_per_task - 1) / items_per_task; }
  // Parts of the kernel's scratch: the memory that split groups share, and then their parts' partials, before the
  // memory of tasks.
  int64_t shared_bytes() const { return is_split ? space.num_groups() * group_bytes : 0; }
  int64_t partials_bytes() const { return is_split ? space.num_groups() * num_parts * partial_bytes : 0; }
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_PLAN_H_
