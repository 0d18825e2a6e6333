#ifndef TENSORD_BACKENDS_CPU_FUSED_TASK_H_
#define TENSORD_BACKENDS_CPU_FUSED_TASK_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/fused/plan.h"
#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/reduce/cascade.h"

namespace tensord::cpu {

// Runs the steps of a plan on one thread: groups, stages of a group, tiles of a stage. Lives while a task does; borrows
// the plan, the arguments and `memory`, which is BytesOf(plan), aligned to 64, and need not be set before.
class FusedTask {
 public:
  static int64_t BytesOf(const FusedPlan& plan);

  // Computes the values that are the same everywhere.
  FusedTask(const FusedPlan& plan, const KernelArgs& args, char* memory);
  ~FusedTask();
  FusedTask(const FusedTask&) = delete;
  FusedTask& operator=(const FusedTask&) = delete;

  void StoreUniform();
  void StartGroup(int64_t group);
  // The stages of the group that was started, their kept results written.
  void RunGroup();

  // Runs the groups [begin, end) of a plan of rows.
  void RunRows(int64_t begin, int64_t end);

  // Runs some tiles of a stage of the started group, for split groups; the folds go to `partials`.
  void RunPart(int64_t stage, int64_t first_tile, int64_t last_tile, char* partials);
  // The folds of a stage, joined from the parts of the group.
  void JoinParts(int64_t stage, const char* partials);
  // Computes the kept values of a stage, its folds joined, for all parts; writes those that are results.
  void RunKept(int64_t stage);

  // Tiles of a map.
  void RunTiles(const std::vector<FusedStep>& steps, int64_t first_tile, int64_t last_tile);

  // Points of a map, in runs of `length` at one step from `begin` on.
  struct PointRuns {
    int64_t begin = 0;
    int64_t length = 0;
    int64_t step = 0;
    int64_t runs = 1;
  };
  // An operand that has only the wanted points, read at the very point: the begin of the first run, and elements from
  // run to run.
  struct OperandRuns {
    int32_t operand = -1;
    const char* place = nullptr;
    int64_t step = 0;
  };
  // Runs a map that was planned for points anywhere. `moved.operand` is -1 if all operands are there.
  void RunPoints(const PointRuns& points, const OperandRuns& moved);

 private:
  // The state of an access in the group.
  struct AccessState {
    char* base = nullptr;
    int64_t number = 0;  // of integers: that of point 0
    const char* built_base = nullptr;
    int64_t built_number = 0;
    bool is_built = false;  // its periodic copy, for base or number as they were
    bool streams = false;
  };

  // A step of a tile with an address, and its distance from run to run.
  struct Move {
    PlaceId place;
    int64_t bytes = 0;
    int64_t fetched_bytes = 0;  // of a run, of what has to come from memory
  };
  using Moves = absl::InlinedVector<Move, 12>;

  void Run(const std::vector<FusedStep>& steps);
  void RunPoints(int64_t begin, int64_t end);
  void PlaceOperand(const OperandRuns& moved, int64_t run, int64_t begin);
  bool FindMoves(const PointRuns& points, const OperandRuns& moved, Moves* moves) const;
  void RunLower(const std::vector<FusedStep>& steps, int64_t n);
  void PlaceAccess(AccessId id, int64_t group);
  void FetchGroup(int64_t group);
  void Load(const FusedStep& step);
  void*& At(PlaceId place) { return at_[place.index]; }
  AccessState& StateOf(AccessId access) { return accesses_[access.index]; }
  const AccessState& StateOf(AccessId access) const { return accesses_[access.index]; }
  Cascade& FoldOf(FoldId fold) { return folds_[fold.index]; }
  bool MayStream(const FusedRun& run) const;
  void LoadPeriodic(const FusedAccess& access, AccessState& state, void** place);
  void FetchAhead(int64_t lines);
  void Open(const FusedStep& step);
  void Close(const FusedStep& step);
  void StartFolds(const FusedStage& stage);
  char* BaseOf(const FusedSaved& saved) const;

  const FusedPlan& plan_;
  const KernelArgs& args_;
  char* const memory_;
  void** at_ = nullptr;  // by place
  AccessState* accesses_ = nullptr;
  Cascade* folds_ = nullptr;
  bool streams_ = false;

  // The memory after the tile's operands: fetched while the tile's steps run, a few lines a step.
  struct Ahead {
    const char* next = nullptr;
    const char* end = nullptr;
  };
  static constexpr int kMaxAhead = 16;  // operands: more than the processor can wait for at once
  Ahead ahead_[kMaxAhead];
  int num_ahead_ = 0;
  int first_ahead_ = 0;
  int64_t fetched_lines_ = 0;

  // The points that steps run on.
  bool tail_ = false;
  int64_t width_ = 1;
  int64_t begin_ = 0;  // points of the group, or of its box
  int64_t n_ = 1;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_TASK_H_
