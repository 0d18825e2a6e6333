#include "backends/cpu/fused_pairs.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backends/cpu/single_operand_loops.h"

namespace tensord::cpu {
namespace {

bool IsFunction(const FusedStep& step, MicroKind kind, CoreOp op) {
  return step.kind == FusedStepKind::kFunction && step.micro == kind && step.op == op;
}

void JoinIn(const FusedPlan& plan, std::vector<FusedStep>* steps) {
  const auto reads = [&](const FusedStep& step, int32_t place) {
    if (step.kind != FusedStepKind::kRun) return step.a == place || step.b == place || step.c == place;
    const std::vector<int32_t>& places = plan.runs[static_cast<size_t>(step.index)].reads;
    return std::find(places.begin(), places.end(), place) != places.end();
  };
  for (size_t i = 0; i < steps->size(); ++i) {
    const FusedStep difference = (*steps)[i];
    if (!IsFunction(difference, MicroKind::kBinary, CoreOp::kSubtract) || !difference.single_b) continue;
    if (plan.places[static_cast<size_t>(difference.out)].kind != FusedPlace::Kind::kRegister) continue;
    const auto uses = [&](const FusedStep& step) { return reads(step, difference.out); };
    if (std::count_if(steps->begin(), steps->end(), uses) != 1) continue;
    FusedStep& exponential = *std::find_if(steps->begin(), steps->end(), uses);
    if (!IsFunction(exponential, MicroKind::kUnary, CoreOp::kExp)) continue;
    const ElementwiseFunction function =
        GetSingleOperandLoops().exp_of_difference[static_cast<size_t>(difference.computed)];
    if (function == nullptr) continue;
    exponential.function = function;
    exponential.a = difference.a;
    exponential.b = difference.b;
    exponential.single_b = true;
    steps->erase(steps->begin() + static_cast<std::ptrdiff_t>(i--));
  }
}

}  // namespace

void JoinPairs(FusedPlan* plan) {
  for (FusedStage& stage : plan->stages) JoinIn(*plan, &stage.tile);
}

}  // namespace tensord::cpu
