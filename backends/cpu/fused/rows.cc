#include "backends/cpu/fused/rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "backends/cpu/fused/translation.h"
#include "backends/cpu/jit/jitted_rows.h"

namespace tensord::cpu {
namespace {

constexpr size_t kMaxStageNodes = 200;  // of a stage: the code has each several times

CoreOp OpOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kProduct:
      return CoreOp::kMultiply;
    case ReduceOp::kMax:
      return CoreOp::kMaximum;
    case ReduceOp::kMin:
      return CoreOp::kMinimum;
    default:
      return CoreOp::kAdd;
  }
}

class RowFormer {
 public:
  RowFormer(JitIsa isa, FusedPlan* plan) : isa_(isa), plan_(*plan), nodes_(isa, *plan) {
    nodes_.AddRepeats(plan->repeats);
    for (const FusedStage& stage : plan->stages) nodes_.AddRepeats(stage.repeats);
  }

  // Returns false if there is no code for something; places may have been added then, which nothing reads.
  bool Form() {
    formed_.rows.length = plan_.space.scan_points();
    for (const FusedStage& stage : plan_.stages) {
      JitRows::Stage rows;
      if (!FormKept(stage, &rows) || !FormLoop(stage, &rows)) return false;
      formed_.rows.stages.push_back(std::move(rows));
    }
    if (isa_ != JitIsa::kAvx512) return IsMapJitted(formed_.rows, isa_);
    const int widest = WidestRegister(formed_.rows);
    if (widest > 8 && !IsWithoutMasks(widest)) return false;
    for (const FusedFold& fold : plan_.folds) {
      if (!IsFoldJitted(fold.dtype(), formed_.rows.length, widest, isa_)) return false;
    }
    return true;
  }

  // Masks have a bit for each element of up to eight bytes.
  bool IsWithoutMasks(int widest) const {
    const auto is_narrow = [](const JitRows::Element& result) { return SizeOf(result.dtype) <= 8; };
    const auto stores_narrow = [&](const JitRows::Stage& stage) {
      return std::all_of(stage.results.begin(), stage.results.end(), is_narrow);
    };
    const auto& stages = formed_.rows.stages;
    return formed_.rows.length % (64 / widest) == 0 && std::all_of(stages.begin(), stages.end(), stores_narrow);
  }

  FusedRows Take() {
    for (const FusedRows::Numbers& numbers : formed_.numbers) {
      FusedPlace& buffer = plan_.places[numbers.buffer];
      buffer.bytes = buffer.element_bytes * (numbers.along > 0 ? numbers.along : FusedRows::kMaxNumberedRows);
    }
    return std::move(formed_);
  }

 private:
  const FusedAccess& AccessOf(AccessId id) const { return plan_.accesses[id]; }

  // A place that is elsewhere in each row.
  void AddAddress(PlaceId place, AccessId id) {
    const FusedAccess& access = AccessOf(id);
    const int64_t bytes = SizeOf(access.dtype);
    const auto& fetches = plan_.group_fetches;
    formed_.addresses.push_back({.place = place, .access = id});
    formed_.rows.moving.push_back({.place = place,
                                   .row_bytes = plan_.space.GroupStride(access.access.strides) * bytes,
                                   .element_bytes = static_cast<int>(bytes),
                                   .is_fetched = std::find(fetches.begin(), fetches.end(), id) != fetches.end()});
  }

  // Integers are written down before the rows are gone through, and read from there.
  void AddNumbers(PlaceId place, AccessId id, int64_t along) {
    const FusedAccess& access = AccessOf(id);
    const int64_t bytes = SizeOf(access.dtype);
    const PlaceId buffer = plan_.places.Add({.kind = FusedPlace::Kind::kTask, .element_bytes = bytes});
    formed_.numbers.push_back({.place = place, .buffer = buffer, .access = id, .along = along});
    formed_.rows.moving.push_back(
        {.place = place, .row_bytes = along > 0 ? 0 : bytes, .element_bytes = static_cast<int>(bytes)});
  }

  bool FormKept(const FusedStage& stage, JitRows::Stage* rows) {
    nodes_.Start(FusedTranslation::Values::kElements);
    for (const FusedStep& step : stage.kept) {
      if (step.kind == FusedStepKind::kLoad) {
        const DType dtype = AccessOf(step.access).dtype;
        const PlaceId address = AddPlace();
        formed_.rows.loads.push_back({.from = address, .to = step.out, .dtype = dtype});
        AddAddress(address, step.access);
      } else if (step.kind == FusedStepKind::kNumbers) {
        const PlaceId address = AddPlace();
        formed_.rows.loads.push_back({.from = address, .to = step.out, .dtype = AccessOf(step.access).dtype});
        AddNumbers(address, step.access, 0);
      } else if (!nodes_.Add(step)) {
        return false;
      }
    }
    for (const FusedStep& step : stage.stores) {
      if (step.kind != FusedStepKind::kClose) return false;
      const DType dtype = AccessOf(step.access).dtype;
      const PlaceId address = AddPlace();
      rows->results.push_back({.from = step.a, .to = address, .dtype = dtype});
      AddAddress(address, step.access);
    }
    if (nodes_.program().nodes.size() > kMaxStageNodes) return false;
    SimplifyJitProgram(&nodes_.program());
    rows->kept = std::move(nodes_.program());
    return true;
  }

  bool FormLoop(const FusedStage& stage, JitRows::Stage* rows) {
    for (const FusedStep& step : stage.repeats) {
      if (!step.single_a || !step.over_tile) return false;
    }
    nodes_.Start(FusedTranslation::Values::kArrays);
    absl::flat_hash_map<PlaceId, AccessId> opened;
    for (const FusedStep& step : stage.tile) {
      switch (step.kind) {
        case FusedStepKind::kLoad:
          if (!AccessOf(step.access).is_linear || AccessOf(step.access).is_periodic) return false;
          AddAddress(step.out, step.access);
          break;
        case FusedStepKind::kOpen:
          if (!AccessOf(step.access).is_linear) return false;
          AddAddress(step.out, step.access);
          opened[step.out] = step.access;
          break;
        case FusedStepKind::kSaved:
          AddSaved(step);
          break;
        case FusedStepKind::kClose:
          break;
        case FusedStepKind::kFold:
          if (!AddFold(step)) return false;
          break;
        case FusedStepKind::kNumbers:
          if (plan_.space.DependsOnGroup(AccessOf(step.access).access.strides)) return false;
          AddNumbers(step.out, step.access, formed_.rows.length);
          break;
        case FusedStepKind::kRepeat:
        case FusedStepKind::kRun:
          return false;
        default:
          if (!nodes_.Add(step)) return false;
      }
    }
    if (nodes_.program().nodes.size() > kMaxStageNodes) return false;
    DropStores(opened);
    SimplifyJitProgram(&nodes_.program());
    rows->loop = std::move(nodes_.program());
    return true;
  }

  PlaceId AddPlace() { return plan_.places.Add({.kind = FusedPlace::Kind::kMoving}); }

  void AddSaved(const FusedStep& step) {
    const FusedSaved& saved = plan_.saved[step.saved];
    if (saved.result.index >= 0) return AddAddress(step.out, saved.result);
    formed_.addresses.push_back({.place = step.out, .saved = step.saved});
  }

  bool AddFold(const FusedStep& step) {
    const FusedFold& fold = plan_.folds[step.fold];
    if (!fold.is_one_run() || fold.op() == ReduceOp::kAnd || fold.op() == ReduceOp::kOr) return false;
    nodes_.AddNode({.kind = JitNode::Kind::kFold,
                    .dtype = fold.dtype(),
                    .op = OpOf(fold.op()),
                    .place = plan_.fold_places[step.fold],
                    .operands = {nodes_.Value(step.a, false, fold.dtype())}});
    return true;
  }

  // Drops stores of values that stay in registers; stores of results that are too big for the cache are streamed.
  void DropStores(const absl::flat_hash_map<PlaceId, AccessId>& opened) {
    for (JitNode& node : nodes_.program().nodes) {
      if (node.kind != JitNode::Kind::kStore) continue;
      if (plan_.places[node.place].kind == FusedPlace::Kind::kRegister) {
        node.kind = JitNode::Kind::kOp;  // of which nothing is read
        node.operands.fill({});
        continue;
      }
      const auto result = opened.find(node.place);
      if (result == opened.end() || !AccessOf(result->second).may_stream) continue;
      const int64_t row_bytes = plan_.space.GroupStride(AccessOf(result->second).access.strides) * SizeOf(node.dtype);
      if (SizeOf(node.dtype) < 4 || row_bytes % 64 != 0) continue;
      node.streams = true;
      formed_.streamed.push_back(result->second);
    }
  }

  const JitIsa isa_;
  FusedPlan& plan_;
  FusedTranslation nodes_;
  FusedRows formed_;
};

}  // namespace

bool FormRows(JitIsa isa, JitOptions::Use use, FusedPlan* plan) {
  const FusedSpace& space = plan->space;
  if (isa == JitIsa::kNone || use == JitOptions::Use::kNever) return false;
  if (isa != JitIsa::kAvx512 && !plan->folds.empty()) return false;
  if (space.is_map() || plan->is_split || !space.has_single_rows() || space.num_tiles() != 1 ||
      space.scan_points() == 0) {
    return false;
  }
  RowFormer former(isa, plan);
  if (!former.Form()) return false;
  plan->rows = former.Take();
  const auto drop = [&](const std::vector<FusedStep>& repeats) {
    for (const FusedStep& step : repeats) plan->places[step.out].bytes = 0;
  };
  drop(plan->repeats);
  for (const FusedStage& stage : plan->stages) drop(stage.repeats);
  plan->stages.clear();
  plan->repeats.clear();
  return true;
}

}  // namespace tensord::cpu
