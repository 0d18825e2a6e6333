#include "backends/cpu/fused/stages.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/elementwise/elementwise.h"

namespace tensord::cpu {
namespace {

// A value so many cheap operations away is computed again rather than read.
constexpr int64_t kCheapToRepeat = 2;
// The same for each byte of a value that would go through memory and is read by one more stage.
constexpr int64_t kLargeCheapToRepeat = 2;
constexpr int64_t kCostLimit = int64_t{1} << 20;

bool IsLeaf(const MicroInstruction& instruction) {
  return instruction.kind == MicroKind::kLoad || instruction.kind == MicroKind::kIota ||
         instruction.kind == MicroKind::kConstant;
}

class StagesFinder {
 public:
  StagesFinder(const MicroProgram& program, const FusedStagesRequest& request)
      : program_(program), request_(request), count_(program.instructions.size()), readers_(count_), results_(count_) {
    for (size_t v = 0; v < count_; ++v) {
      if (!IsReader(v)) continue;
      for (const int32_t operand : At(v).operands) {
        if (operand >= 0 && IsFull(static_cast<size_t>(operand))) {
          readers_[static_cast<size_t>(operand)].push_back(v);
        }
      }
    }
    for (size_t r = 0; r < program.results.size(); ++r) {
      results_[static_cast<size_t>(program.results[r].value)].push_back(static_cast<int32_t>(r));
    }
  }

  FusedStages Find() {
    FindCosts();
    stages_.needed.assign(static_cast<size_t>(program_.num_stages()), std::vector<bool>(count_));
    stages_.first.assign(count_, -1);
    stages_.slot.assign(count_, {});
    last_.assign(count_, -1);
    for (size_t v = count_; v-- > 0;) Decide(v);
    GiveSlots();
    return std::move(stages_);
  }

 private:
  const MicroInstruction& At(size_t value) const { return program_.instructions[value]; }
  bool IsFull(size_t value) const { return request_.is_live[value] && request_.is_full[value]; }
  // Returns true for readers with values at all points.
  bool IsReader(size_t value) const {
    return IsFull(value) || (request_.is_live[value] && At(value).kind == MicroKind::kReduce);
  }

  // Visits the stages in which others need the value: `stages_of` gives those of a reader that computes.
  template <typename Visit, typename StagesOf>
  void ForEachNeed(size_t value, const StagesOf& stages_of, const Visit& visit) const {
    if (!results_[value].empty()) visit(At(value).stage);
    for (const size_t reader : readers_[value]) {
      if (At(reader).kind == MicroKind::kReduce) {
        visit(At(reader).stage - 1);
      } else {
        stages_of(reader, visit);
      }
    }
  }

  // Finds the costs of computing values again from available ones: leaves, and the values kept if everything is
  // computed once.
  void FindCosts() {
    std::vector<int32_t> first(count_, -1);
    std::vector<bool> is_kept(count_);
    for (size_t v = count_; v-- > 0;) {
      const auto once = [&](size_t reader, const auto& visit) {
        if (first[reader] >= 0) visit(first[reader]);
      };
      ForEachNeed(v, once, [&](int32_t stage) {
        is_kept[v] = is_kept[v] || (first[v] >= 0 && first[v] != stage);
        first[v] = first[v] < 0 ? stage : std::min(first[v], stage);
      });
    }
    costs_.assign(count_, 0);
    for (size_t v = 0; v < count_; ++v) {
      if (!IsFull(v) || IsLeaf(At(v))) continue;
      int64_t cost = ComputingCost(program_, At(v));
      for (const int32_t operand : At(v).operands) {
        if (operand < 0) continue;
        const size_t o = static_cast<size_t>(operand);
        if (!is_kept[o] || costs_[o] <= kCheapToRepeat) cost += costs_[o];
      }
      costs_[v] = std::min(cost, kCostLimit);
    }
  }

  // Its readers are decided.
  void Decide(size_t value) {
    if (!IsFull(value)) return;
    const auto computed = [&](size_t reader, const auto& visit) {
      for (int32_t stage = 0; stage < program_.num_stages(); ++stage) {
        if (stages_.Computes(stage, reader)) visit(stage);
      }
    };
    int32_t needs = 0;
    ForEachNeed(value, computed, [&](int32_t stage) {
      auto needed = stages_.needed[static_cast<size_t>(stage)].begin() + static_cast<std::ptrdiff_t>(value);
      if (*needed) return;
      *needed = true;
      ++needs;
      int32_t& first = stages_.first[value];
      first = first < 0 ? stage : std::min(first, stage);
      last_[value] = std::max(last_[value], stage);
    });
    if (needs > 1 && !IsLeaf(At(value)) && IsKept(value, needs)) stages_.slot[value] = kUndecided;
  }

  bool IsKept(size_t value, int32_t needs) const {
    if (costs_[value] <= kCheapToRepeat) return false;
    return !request_.is_large || needs > 2 || costs_[value] > kLargeCheapToRepeat * SizeOf(At(value).dtype);
  }

  // ---- Slots ----

  void GiveSlots() {
    std::vector<size_t> kept;
    for (size_t v = 0; v < count_; ++v) {
      if (stages_.slot[v] == kUndecided) kept.push_back(v);
    }
    if (kept.empty()) return;
    std::stable_sort(kept.begin(), kept.end(), [&](size_t a, size_t b) { return stages_.first[a] < stages_.first[b]; });
    for (size_t r = 0; r < program_.results.size(); ++r) {
      const size_t value = static_cast<size_t>(program_.results[r].value);
      if (!request_.lends_memory[r] || !IsFull(value) || IsLeaf(At(value))) continue;
      stages_.slots.Add({.element_bytes = SizeOf(At(value).dtype), .result = static_cast<int32_t>(r)});
    }
    lodgers_.assign(stages_.slots.size(), {});
    for (const size_t value : kept) {
      const SavedId slot = FindSlot(value);
      stages_.slot[value] = slot;
      lodgers_[slot].push_back(value);
    }
  }

  SavedId FindSlot(size_t value) {
    const int64_t bytes = SizeOf(At(value).dtype);
    SavedId found;
    for (size_t s = 0; s < stages_.slots.size(); ++s) {
      const SavedId id = stages_.slots.id(s);
      const FusedStages::Slot& slot = stages_.slots[id];
      if (slot.element_bytes != bytes || !MayFollow(id, value)) continue;
      if (IsItself(slot, value)) return id;
      if (found.index < 0 && MayPrecedeResult(slot, value)) found = id;
    }
    if (found.index >= 0) return found;
    lodgers_.Add({});
    return stages_.slots.Add({.element_bytes = bytes});
  }

  bool IsItself(const FusedStages::Slot& slot, size_t value) const {
    return slot.result >= 0 && !results_[value].empty() && results_[value][0] == slot.result;
  }

  // Tells whether the slot is free when the value is computed; values come in the order of their stages.
  bool MayFollow(SavedId slot, size_t value) const {
    if (lodgers_[slot].empty()) return true;
    const size_t before = lodgers_[slot].back();
    return !IsItself(stages_.slots[slot], before) && IsOverWhen(before, stages_.first[value], value);
  }

  bool MayPrecedeResult(const FusedStages::Slot& slot, size_t value) const {
    if (slot.result < 0) return true;
    const size_t written = static_cast<size_t>(program_.results[static_cast<size_t>(slot.result)].value);
    return results_[written][0] == slot.result && IsOverWhen(value, At(written).stage, written);
  }

  // Tells whether `value` has been read for the last time when `next` is computed in a stage. Within that stage code
  // reads and writes point by point in the order of the instructions; folds may come later, and products with them.
  bool IsOverWhen(size_t value, int32_t stage, size_t next) const {
    if (last_[value] != stage) return last_[value] < stage;
    return stages_.first[value] < stage &&
           std::all_of(readers_[value].begin(), readers_[value].end(), [&](size_t reader) {
             if (At(reader).kind == MicroKind::kReduce) return At(reader).stage - 1 != stage;
             if (!stages_.Computes(stage, reader)) return true;
             return reader <= next && !MayJoinItsFold(reader, stage);
           });
  }

  // Tells whether a fold of the stage may compute the product itself (folded_products.h): it then reads the factors.
  bool MayJoinItsFold(size_t value, int32_t stage) const {
    const MicroInstruction& product = At(value);
    return product.kind == MicroKind::kBinary && product.op == CoreOp::kMultiply &&
           std::any_of(readers_[value].begin(), readers_[value].end(), [&](size_t reader) {
             return At(reader).kind == MicroKind::kReduce && At(reader).stage - 1 == stage;
           });
  }

  static constexpr SavedId kUndecided = {1 << 30};  // that it is kept, and not yet where

  const MicroProgram& program_;
  const FusedStagesRequest& request_;
  const size_t count_;
  std::vector<std::vector<size_t>> readers_;        // by value at all points: what is computed of it or folds it
  std::vector<std::vector<int32_t>> results_;       // by value
  std::vector<int64_t> costs_;                      // by value
  std::vector<int32_t> last_;                       // by value: the stage that needs it last
  IdVector<SavedId, std::vector<size_t>> lodgers_;  // in order
  FusedStages stages_;
};

}  // namespace

int64_t ComputingCost(const MicroProgram& program, const MicroInstruction& instruction) {
  if (instruction.kind != MicroKind::kUnary && instruction.kind != MicroKind::kBinary) return 1;
  const DType computed = program.instructions[static_cast<size_t>(instruction.operands[0])].dtype;
  return (int64_t{32} << 10) / ElementsPerTask(instruction.op, computed);
}

int64_t FusedStages::own_bytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots) bytes += slot.result < 0 ? slot.element_bytes : 0;
  return bytes;
}

FusedStages FindFusedStages(const MicroProgram& program, const FusedStagesRequest& request) {
  return StagesFinder(program, request).Find();
}

}  // namespace tensord::cpu
