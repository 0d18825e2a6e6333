#include "backends/cuda/codegen/reduce_plan.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "backends/cuda/codegen/values.h"
#include "engine/base/rounding.h"

namespace tensord {
namespace {

constexpr int64_t kWarp = 32;
// Items that a lane has before it is worth another lane.
constexpr int64_t kItemsPerLane = 4;
// Threads of a block where there are blocks enough.
constexpr int64_t kUsualThreads = 256;
// 32-bit registers that a thread may keep for the next pass, and instructions that its unrolled loop may have.
constexpr int64_t kCarriedWords = 32;
constexpr int64_t kUnrolledInstructions = 256;

int64_t PowerOfTwo(int64_t at_least) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(at_least, 1))));
}

void PlanThreads(const MicroProgram& program, const CudaOptions& options, CudaReducePlan* plan) {
  const int64_t max_threads = options.max_threads_per_block;
  const bool is_crowded = plan->kept >= int64_t{options.num_processors} * 4;
  const int64_t limit = is_crowded ? std::min(kUsualThreads, max_threads) : max_threads;
  const int64_t useful_lanes = PowerOfTwo(CeilDiv(plan->reduced, kItemsPerLane));
  plan->is_rows = program.axes.empty() || program.axes[0].is_reduced;
  if (plan->is_rows) {
    plan->lanes = std::min(useful_lanes, limit);
    plan->group = std::min(kUsualThreads / 2, limit) / plan->lanes;
  } else {
    // Neighbours in memory are read by neighbouring threads, at least a warp of them where there are so many.
    const int64_t neighbours = std::min(kWarp, PowerOfTwo(plan->kept));
    plan->lanes = std::min(useful_lanes, limit / neighbours);
    plan->group = std::max(neighbours, std::min(kUsualThreads / 2, limit) / plan->lanes);
  }
  plan->group = std::min(std::max<int64_t>(plan->group, 1), PowerOfTwo(plan->kept));
  plan->group = std::max(plan->group, kWarp / plan->lanes);
  plan->blocks = CeilDiv(plan->kept, plan->group);
}

// Cuts the reduced range where the blocks would leave most of the device idle.
void PlanSplits(const CudaOptions& options, CudaReducePlan* plan) {
  plan->split_length = plan->reduced;
  if (plan->blocks == 0 || plan->blocks >= options.num_processors) return;
  const int64_t wanted = 2 * int64_t{options.num_processors} / plan->blocks;
  const int64_t least = std::max<int64_t>(options.points_per_split / plan->group, 1);
  const int64_t splits = std::min(wanted, plan->reduced / least);
  if (splits < 2) return;
  plan->split_length = CeilDiv(CeilDiv(plan->reduced, splits), plan->lanes) * plan->lanes;
  plan->splits = CeilDiv(plan->reduced, plan->split_length);
}

class PassPlanner {
 public:
  PassPlanner(const MicroProgram& program, bool carries) : program_(program), carries_(carries) {}

  std::vector<CudaPass> Plan() {
    std::vector<CudaPass> passes;
    computed_in_.assign(program_.instructions.size(), -1);
    for (int32_t number = 0; number < program_.num_stages(); ++number) {
      pass_ = CudaPass{.number = number};
      seen_.assign(program_.instructions.size(), false);
      for (size_t i = 0; i < program_.instructions.size(); ++i) {
        const MicroInstruction& instruction = program_.instructions[i];
        if (instruction.kind != MicroKind::kReduce || instruction.stage != number + 1) continue;
        pass_.reductions.push_back(static_cast<int32_t>(i));
        Visit(instruction.operands[0]);
      }
      for (size_t r = 0; r < program_.results.size(); ++r) {
        const MicroInstruction& instruction = At(program_.results[r].value);
        if (instruction.level != MicroLevel::kFull || instruction.stage != number) continue;
        pass_.results.push_back(r);
        Visit(program_.results[r].value);
      }
      std::sort(pass_.values.begin(), pass_.values.end());
      for (int32_t v : pass_.values) {
        if (computed_in_[static_cast<size_t>(v)] < 0) computed_in_[static_cast<size_t>(v)] = number;
      }
      passes.push_back(std::move(pass_));
    }
    return passes;
  }

 private:
  const MicroInstruction& At(int32_t v) const { return program_.instructions[static_cast<size_t>(v)]; }

  void Visit(int32_t v) {
    const MicroInstruction& instruction = At(v);
    if (instruction.level != MicroLevel::kFull || seen_[static_cast<size_t>(v)]) return;
    seen_[static_cast<size_t>(v)] = true;
    const bool is_there = computed_in_[static_cast<size_t>(v)] >= 0;
    if (carries_ && is_there && instruction.kind != MicroKind::kIota) {
      pass_.carried.push_back(v);
      return;
    }
    pass_.values.push_back(v);
    for (int32_t operand : instruction.operands) {
      if (operand >= 0) Visit(operand);
    }
  }

  const MicroProgram& program_;
  const bool carries_;
  std::vector<int32_t> computed_in_;  // by value: the first pass that computes it, or -1
  std::vector<bool> seen_;            // by value: in this pass
  CudaPass pass_;
};

// Bytes that a thread carries for one point.
int64_t CarriedBytes(const MicroProgram& program, const std::vector<CudaPass>& passes) {
  std::vector<bool> is_carried(program.instructions.size());
  for (const CudaPass& pass : passes) {
    for (int32_t v : pass.carried) is_carried[static_cast<size_t>(v)] = true;
  }
  int64_t bytes = 0;
  for (size_t v = 0; v < is_carried.size(); ++v) {
    if (is_carried[v]) bytes += SizeOf(program.instructions[v].dtype);
  }
  return bytes;
}

void PlanPasses(const MicroProgram& program, const CudaOptions& options, CudaReducePlan* plan) {
  for (const MicroInstruction& instruction : program.instructions) {
    if (instruction.kind != MicroKind::kReduce) continue;
    const int64_t size = SizeOf(CudaAccumulator(instruction.dtype));
    const bool in_warp = plan->lanes == 1 || (plan->is_rows && plan->lanes <= kWarp);
    const int64_t parts = in_warp ? 0 : plan->is_rows ? plan->threads() / kWarp : plan->threads();
    plan->join_bytes = std::max(plan->join_bytes, parts * size);
  }
  plan->join_bytes = CeilDiv(plan->join_bytes, 16) * 16;
  plan->passes = PassPlanner(program, /*carries=*/plan->splits == 1 && plan->reduced > 0).Plan();
  if (plan->splits > 1) return;
  const int64_t bytes = CarriedBytes(program, plan->passes);
  if (bytes == 0) return;
  int64_t instructions = 0;
  for (const CudaPass& pass : plan->passes) instructions += static_cast<int64_t>(pass.values.size());
  const int64_t items = plan->items();
  if (items <= kCarriedWords && items * CeilDiv(bytes, 4) <= kCarriedWords &&
      items * instructions <= kUnrolledInstructions) {
    plan->carry = CudaCarry::kRegisters;
    return;
  }
  const int64_t per_thread = items <= options.max_shared_bytes ? items * bytes : options.max_shared_bytes + 1;
  if (per_thread <= options.max_shared_bytes / plan->threads() &&
      per_thread * plan->threads() + plan->join_bytes <= options.max_shared_bytes) {
    plan->carry = CudaCarry::kShared;
    plan->carry_bytes = per_thread * plan->threads();
    return;
  }
  plan->passes = PassPlanner(program, /*carries=*/false).Plan();
}

}  // namespace

std::string CudaReducePlan::Describe() const {
  const absl::string_view kind = is_rows ? "row" : "column";
  const auto plural = [](int64_t count) { return count == 1 ? "" : "s"; };
  std::string text = absl::StrCat(kind, "s, ", lanes, " thread", plural(lanes), " a ", kind, ", ", group, " ", kind,
                                  plural(group), " a block");
  if (splits > 1) absl::StrAppend(&text, ", cut into ", splits, " parts of ", split_length);
  const auto walks = std::count_if(passes.begin(), passes.end(), [](const CudaPass& pass) {
    return !pass.reductions.empty() || !pass.results.empty();
  });
  if (walks > 1) absl::StrAppend(&text, ", ", walks, " passes");
  if (carry == CudaCarry::kRegisters) absl::StrAppend(&text, ", values kept in registers");
  if (carry == CudaCarry::kShared) absl::StrAppend(&text, ", values kept in shared memory");
  return text;
}

CudaReducePlan PlanCudaReduce(const MicroProgram& program, const CudaOptions& options) {
  CudaReducePlan plan;
  plan.kept = program.num_points(MicroLevel::kKept);
  plan.reduced = 1;
  for (const MicroAxis& axis : program.axes) {
    if (axis.is_reduced) plan.reduced *= axis.size;
  }
  PlanThreads(program, options, &plan);
  PlanSplits(options, &plan);
  PlanPasses(program, options, &plan);
  return plan;
}

}  // namespace tensord
