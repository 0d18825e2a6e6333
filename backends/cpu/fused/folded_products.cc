#include "backends/cpu/fused/folded_products.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tensord::cpu {
namespace {

bool IsFunction(const FusedStep& step, MicroKind kind, CoreOp op) {
  return step.kind == FusedStepKind::kFunction && step.micro == kind && step.op == op;
}

bool Reads(const FusedPlan& plan, const FusedStep& step, PlaceId place) {
  if (step.kind != FusedStepKind::kRun) return step.a == place || step.b == place || step.c == place;
  const std::vector<PlaceId>& places = plan.runs[step.run].reads;
  return std::find(places.begin(), places.end(), place) != places.end();
}

// Returns the one step that reads a step's register; null if there is not exactly one, or others see the value.
FusedStep* OnlyReader(const FusedPlan& plan, const FusedStep& step, std::vector<FusedStep>* steps) {
  if (plan.places[step.out].kind != FusedPlace::Kind::kRegister) return nullptr;
  const auto uses = [&](const FusedStep& other) { return Reads(plan, other, step.out); };
  if (std::count_if(steps->begin(), steps->end(), uses) != 1) return nullptr;
  return &*std::find_if(steps->begin(), steps->end(), uses);
}

}  // namespace

void JoinFoldedProducts(FusedPlan* plan) {
  if (!plan->space.has_single_rows()) return;
  for (FusedStage& stage : plan->stages) {
    std::vector<FusedStep>& steps = stage.tile;
    for (size_t i = 0; i < steps.size(); ++i) {
      const FusedStep product = steps[i];
      if (!IsFunction(product, MicroKind::kBinary, CoreOp::kMultiply) || product.single_a || product.single_b) continue;
      FusedStep* const reader = OnlyReader(*plan, product, &steps);
      if (reader == nullptr || reader->kind != FusedStepKind::kFold) continue;
      if (!plan->folds[reader->fold].takes_products()) continue;
      reader->a = product.a;
      reader->b = product.b;
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i--));
    }
  }
}

}  // namespace tensord::cpu
