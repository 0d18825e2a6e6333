#include "engine/ir/contraction_plan.h"

#include <algorithm>

namespace tensord {

std::vector<std::pair<int64_t, int64_t>> PathByPositions(const ContractionPlan& plan) {
  std::vector<int> live;
  for (int i = 0; i < plan.num_operands; ++i) live.push_back(i);
  std::vector<std::pair<int64_t, int64_t>> positions;
  for (const auto& [a, b] : plan.path) {
    // The rest is in ascending order: results go to the end.
    const auto smaller = std::lower_bound(live.begin(), live.end(), std::min(a, b));
    const auto larger = std::lower_bound(smaller, live.end(), std::max(a, b));
    positions.push_back({smaller - live.begin(), larger - live.begin()});
    live.erase(larger);
    live.erase(smaller);
    live.push_back(plan.num_operands + static_cast<int>(positions.size()) - 1);
  }
  return positions;
}

}  // namespace tensord
