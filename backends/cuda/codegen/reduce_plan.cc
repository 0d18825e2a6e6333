#include "backends/cuda/codegen/reduce_plan.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "backends/cuda/codegen/launch_parts.h"
#include "backends/cuda/codegen/values.h"
#include "backends/cuda/codegen/vectors.h"
#include "engine/base/rounding.h"

namespace tensord {
namespace {

constexpr int64_t kWarp = 32;
// Items that a lane has before it is worth another lane.
constexpr int64_t kItemsPerLane = 4;
// Threads of a block where there are blocks enough, and threads that a processor has room for.
constexpr int64_t kUsualThreads = 256;
constexpr int64_t kThreadsPerProcessor = 2048;
// 32-bit registers that a thread may keep for the next pass, and instructions that its unrolled loop may have.
constexpr int64_t kCarriedWords = 32;
constexpr int64_t kUnrolledInstructions = 512;
// Parts of a range that a launch is cut for, and accumulators of all: joining them should take some 10 ms at most.
constexpr int64_t kMostRowSplits = int64_t{1} << 20;
constexpr int64_t kMostColumnSplits = int64_t{1} << 17;
constexpr int64_t kMostPartials = int64_t{1} << 22;
// 32-bit registers that neighbouring columns may take for their accumulators.
constexpr int64_t kAccumulatorWords = 16;

int64_t PowerOfTwo(int64_t at_least) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(at_least, 1))));
}

int64_t Words(DType dtype) { return CeilDiv(SizeOf(dtype), 4); }

// Neighbouring columns have their kept values side by side only behind the one pass that they need: other programs read
// a warp's elements at once, which is enough.
bool TakesNeighbouringColumns(const MicroProgram& program, int64_t* accumulator_words) {
  for (const MicroInstruction& instruction : program.instructions) {
    if (instruction.kind != MicroKind::kReduce) continue;
    if (instruction.stage > 1) return false;
    *accumulator_words += Words(CudaAccumulator(instruction.dtype));
  }
  return std::none_of(program.results.begin(), program.results.end(), [&](const MicroResult& result) {
    return program.instructions[static_cast<size_t>(result.value)].level == MicroLevel::kFull;
  });
}

int64_t WidthOf(const MicroProgram& program, const CudaOptions& options, const CudaReducePlan& plan) {
  if (program.axes.empty() || plan.kept == 0 || plan.reduced == 0) return 1;
  int64_t width = CudaVectorWidth(program, kCudaVectorBytes);
  while (width > 1 && program.axes[0].size % width != 0) width /= 2;
  if (plan.is_rows) return width;
  int64_t accumulator_words = 0;
  if (!TakesNeighbouringColumns(program, &accumulator_words)) return 1;
  while (width > 1 && width * accumulator_words > kAccumulatorWords) width /= 2;
  while (width > 1 && plan.kept / width < kWarp) width /= 2;
  const int64_t threads_at_once = int64_t{options.num_processors} * kUsualThreads;
  while (width > 1 && plan.reduced / kItemsPerLane < threads_at_once / (plan.kept / width)) width /= 2;
  return width;
}

// Returns the lanes of a row where there are many rows: few, so that joining takes little, and as many as it takes to
// keep `carried_words` an element in registers.
int64_t LanesOfManyRows(const CudaOptions& options, const CudaReducePlan& plan, int64_t carried_words) {
  const int64_t most = options.max_threads_per_block;
  const int64_t usual = std::min(kUsualThreads, most);
  const int64_t wanted = PowerOfTwo(CeilDiv(plan.reduced, kCarriedWords / std::clamp<int64_t>(carried_words, 1, 32)));
  if (carried_words == 0) return std::clamp(wanted, std::min(kWarp, usual), usual);
  if (wanted <= most) return std::max(wanted, std::min(kWarp, most));
  // Too long for registers: for shared memory perhaps, which all threads of a processor use then.
  const bool fits = plan.reduced <= options.max_shared_bytes / (4 * carried_words);
  return fits ? most : usual;
}

void PlanThreads(const CudaOptions& options, int64_t carried_words, CudaReducePlan* plan) {
  const int64_t max_threads = options.max_threads_per_block;
  const bool is_crowded = plan->kept >= int64_t{options.num_processors} * 4;
  const int64_t limit = is_crowded ? std::min(kUsualThreads, max_threads) : max_threads;
  const int64_t places = plan->kept / plan->kept_width();
  const int64_t useful_lanes = PowerOfTwo(CeilDiv(plan->reduced, std::max(kItemsPerLane, plan->reduced_width())));
  if (plan->is_rows) {
    plan->lanes = std::min(useful_lanes, is_crowded ? LanesOfManyRows(options, *plan, carried_words) : limit);
    plan->group = std::min(kUsualThreads / 2, limit) / plan->lanes;
  } else {
    // Neighbours in memory are read by neighbouring threads, at least a warp of them where there are so many.
    const int64_t neighbours = std::min(kWarp, PowerOfTwo(places));
    plan->lanes = std::min(useful_lanes, limit / neighbours);
    plan->group = std::max(neighbours, std::min(kUsualThreads / 2, limit) / plan->lanes);
  }
  plan->group = std::min(std::max<int64_t>(plan->group, 1), PowerOfTwo(places));
  plan->group = std::max(plan->group, kWarp / plan->lanes);
  plan->blocks = CeilDiv(places, plan->group);
}

// Returns the blocks that the heaviest launch needs to be cut, since nothing stops a launch; 0: it has them, or is
// short.
int64_t BlocksToCut(const MicroProgram& program, const CudaOptions& options, const CudaReducePlan& plan) {
  double steps = 0;
  for (const CudaPass& pass : plan.passes) steps = std::max(steps, StepsOfPass(program, pass));
  steps *= static_cast<double>(plan.kept) * static_cast<double>(plan.reduced);
  const int64_t parts = CudaLaunchParts(steps, std::numeric_limits<int64_t>::max(), options);
  return parts == CudaLaunchParts(steps, plan.blocks, options) ? 0
                                                               : parts * options.num_processors * kLeastBlocksOfPart;
}

// Cuts the reduced range where the blocks would leave most of the device idle: rows where there are fewer blocks than
// processors, columns, whose blocks are small, where there are fewer threads than the device has room for. Also where
// the launch takes long and has too few blocks to be cut.
void PlanSplits(const MicroProgram& program, const CudaOptions& options, CudaReducePlan* plan) {
  plan->split_length = plan->reduced;
  const int64_t room = int64_t{options.num_processors} * kThreadsPerProcessor;
  const bool is_full = plan->is_rows ? plan->blocks >= options.num_processors : plan->blocks >= room / plan->threads();
  const int64_t to_cut = plan->blocks == 0 ? 0 : BlocksToCut(program, options, *plan);
  if (plan->blocks == 0 || (is_full && to_cut == 0)) return;
  const int64_t to_fill = plan->is_rows ? 2 * int64_t{options.num_processors} : 2 * room / plan->threads();
  const int64_t most = std::min(plan->is_rows ? kMostRowSplits : kMostColumnSplits, kMostPartials / plan->kept);
  const int64_t wanted = std::max(to_fill / plan->blocks, std::min(CeilDiv(to_cut, plan->blocks), most));
  const int64_t least = std::max<int64_t>(options.points_per_split / (plan->group * plan->kept_width()), 1);
  const int64_t splits = std::min(wanted, plan->reduced / least);
  if (splits < 2) return;
  const int64_t at_once = plan->lanes * plan->reduced_width();
  plan->split_length = CeilDiv(CeilDiv(plan->reduced, splits), at_once) * at_once;
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

// Gives each value that is carried a place. A value's place is free again from the last pass on that reads it: that
// pass reads a point's values before it keeps others.
void PlanPlaces(const MicroProgram& program, CudaReducePlan* plan) {
  const size_t num_values = program.instructions.size();
  std::vector<int32_t> last_read(num_values, -1);
  for (const CudaPass& pass : plan->passes) {
    for (const int32_t v : pass.carried) last_read[static_cast<size_t>(v)] = pass.number;
  }
  plan->places.assign(num_values, -1);
  plan->place_dtypes.clear();
  std::vector<int32_t> free_from;  // by place
  for (const CudaPass& pass : plan->passes) {
    for (const int32_t v : pass.values) {
      const size_t value = static_cast<size_t>(v);
      if (last_read[value] < 0 || plan->places[value] >= 0) continue;
      const DType dtype = program.instructions[value].dtype;
      size_t place = 0;
      while (place < free_from.size() && (plan->place_dtypes[place] != dtype || free_from[place] > pass.number))
        ++place;
      if (place == free_from.size()) {
        plan->place_dtypes.push_back(dtype);
        free_from.push_back(0);
      }
      free_from[place] = last_read[value];
      plan->places[value] = static_cast<int32_t>(place);
    }
  }
}

void PlanPasses(const MicroProgram& program, bool carries, CudaReducePlan* plan) {
  plan->passes = PassPlanner(program, carries).Plan();
  PlanPlaces(program, plan);
}

int64_t CarriedWords(const CudaReducePlan& plan) {
  int64_t words = 0;
  for (const DType dtype : plan.place_dtypes) words += Words(dtype);
  return words;
}

void PlanJoining(const MicroProgram& program, CudaReducePlan* plan) {
  for (const MicroInstruction& instruction : program.instructions) {
    if (instruction.kind != MicroKind::kReduce) continue;
    const int64_t size = SizeOf(CudaAccumulator(instruction.dtype));
    const bool in_warp = plan->lanes == 1 || (plan->is_rows && plan->lanes <= kWarp);
    const int64_t parts = in_warp ? 0 : plan->is_rows ? plan->threads() / kWarp : plan->threads();
    plan->join_bytes = std::max(plan->join_bytes, parts * size);
  }
  plan->join_bytes = CeilDiv(plan->join_bytes, 16) * 16;
}

// Decides where what is carried is kept; nothing is carried if there is no room.
void PlanCarry(const MicroProgram& program, const CudaOptions& options, CudaReducePlan* plan) {
  if (plan->place_dtypes.empty()) return;
  int64_t instructions = 0, bytes = 0;
  for (const CudaPass& pass : plan->passes) instructions += static_cast<int64_t>(pass.values.size());
  for (const DType dtype : plan->place_dtypes) bytes += SizeOf(dtype);
  const int64_t items = plan->items();
  if (items <= kCarriedWords && items * CarriedWords(*plan) <= kCarriedWords &&
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
  PlanPasses(program, /*carries=*/false, plan);
}

}  // namespace

std::string CudaReducePlan::Describe() const {
  const absl::string_view kind = is_rows ? "row" : "column";
  const auto plural = [](int64_t count) { return count == 1 ? "" : "s"; };
  const int64_t in_block = group * kept_width();
  std::string text = absl::StrCat(kind, "s, ", lanes, " thread", plural(lanes), " a ", kind, ", ", in_block, " ", kind,
                                  plural(in_block), " a block");
  if (width > 1) absl::StrAppend(&text, ", ", width, " neighbours a thread");
  if (splits > 1) absl::StrAppend(&text, ", cut into ", splits, " parts of ", split_length);
  const auto walks = std::count_if(passes.begin(), passes.end(), [](const CudaPass& pass) {
    return !pass.reductions.empty() || !pass.results.empty();
  });
  if (walks > 1) absl::StrAppend(&text, ", ", walks, " passes");
  if (carry == CudaCarry::kRegisters) absl::StrAppend(&text, ", values kept in registers");
  if (carry == CudaCarry::kShared) absl::StrAppend(&text, ", values kept in shared memory");
  return text;
}

double StepsOfPass(const MicroProgram& program, const CudaPass& pass) {
  double steps = 0;
  for (const std::vector<int32_t>* const values : {&pass.values, &pass.reductions}) {
    for (const int32_t v : *values) steps += CudaSteps(program, v);
  }
  return steps;
}

CudaReducePlan PlanCudaReduce(const MicroProgram& program, const CudaOptions& options) {
  CudaReducePlan plan;
  plan.kept = program.num_points(MicroLevel::kKept);
  plan.reduced = 1;
  for (const MicroAxis& axis : program.axes) {
    if (axis.is_reduced) plan.reduced *= axis.size;
  }
  plan.is_rows = program.axes.empty() || program.axes[0].is_reduced;
  plan.width = WidthOf(program, options, plan);
  PlanPasses(program, /*carries=*/plan.reduced > 0, &plan);
  PlanThreads(options, CarriedWords(plan), &plan);
  PlanSplits(program, options, &plan);
  PlanJoining(program, &plan);
  if (plan.splits > 1) {
    PlanPasses(program, /*carries=*/false, &plan);
  } else {
    PlanCarry(program, options, &plan);
  }
  return plan;
}

}  // namespace tensord
