#include "clients/load/overload.h"

#include <algorithm>

#include "absl/status/status.h"
#include "clients/load/load_run.h"

namespace tensord::load {
namespace {

constexpr int kMostConcurrency = 256;
// After two steps in a row that gain less there is no other one.
constexpr double kLeastGain = 1.05;
constexpr int kMostFlatSteps = 2;

std::vector<int> Doublings() {
  std::vector<int> values;
  for (int value = 1; value <= kMostConcurrency; value *= 2) values.push_back(value);
  return values;
}

}  // namespace

absl::StatusOr<OverloadResult> RunOverload(LoadPlan plan, double factor, const std::vector<int>& concurrencies) {
  OverloadResult result;
  LoadPlan closed = plan;
  closed.rate.reset();
  closed.duration = std::max(plan.duration / 4, std::min(plan.duration, absl::Seconds(1)));
  closed.cancelled_share = 0;
  closed.disconnected_share = 0;
  closed.deadline.reset();
  int flat_steps = 0;
  for (const int concurrency : concurrencies.empty() ? Doublings() : concurrencies) {
    closed.concurrency = concurrency;
    const absl::StatusOr<LoadResult> step = RunLoad(closed);
    if (!step.ok()) return step.status();
    if (step->is_server_gone) return absl::UnavailableError("the server is gone before the peak was known");
    if (step->is_interrupted) return absl::CancelledError("interrupted before the peak was known");
    flat_steps = step->goodput() > kLeastGain * result.peak_goodput ? 0 : flat_steps + 1;
    if (step->goodput() > result.peak_goodput) {
      result.peak_goodput = step->goodput();
      result.peak_concurrency = concurrency;
    }
    if (flat_steps == kMostFlatSteps && concurrencies.empty()) break;
  }
  if (result.peak_goodput <= 0)
    return absl::FailedPreconditionError("no call succeeded, so there is no peak to exceed");
  result.offered = factor * result.peak_goodput;
  plan.rate = result.offered;
  absl::StatusOr<LoadResult> overload = RunLoad(plan);
  if (!overload.ok()) return overload.status();
  result.overload = *std::move(overload);
  return result;
}

}  // namespace tensord::load
