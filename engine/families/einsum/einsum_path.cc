#include "engine/families/einsum/einsum_path.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/families/einsum/path_search.h"
#include "engine/families/einsum/step_order.h"

namespace tensord {

absl::StatusOr<EinsumPath> PathOf(const EinsumTerms& terms, const Attributes& attrs) {
  const int64_t num_operands = static_cast<int64_t>(terms.operands.size());
  if (num_operands > kMaxEinsumOperands) {
    return RefuseLimit("einsum_operands", kMaxEinsumOperands, num_operands, "operands of one einsum");
  }
  const int64_t incidences = num_operands * static_cast<int64_t>(terms.sizes.size());
  if (incidences > kMaxEinsumIncidences) {
    return RefuseLimit("einsum_incidences", kMaxEinsumIncidences, incidences, "operands times labels of one einsum");
  }
  std::vector<int64_t> sizes;
  for (const Dim& size : terms.sizes) sizes.push_back(size.is_static() ? size.size.constant() : kSizeOfSymbol);
  std::vector<std::vector<int>> operands = terms.operands;
  for (std::vector<int>& term : operands) term.erase(std::remove(term.begin(), term.end(), kUnitAxis), term.end());
  ContractionNetwork network(operands, terms.output, sizes);
  // A bound says nothing of unknown sizes; a program compiled for the sizes of a run is held to it.
  const bool is_static =
      std::all_of(terms.sizes.begin(), terms.sizes.end(), [](const Dim& size) { return size.is_static(); });
  const std::optional<int64_t> bound = is_static ? attrs.MaybeInt("largest_intermediate") : std::nullopt;
  ContractionPath path = terms.path;
  if (path.empty()) {
    ASSIGN_OR_RETURN(path, SearchPath(network, static_cast<PathOptimizer>(attrs.Int("optimizer")), bound));
  } else if (bound.has_value()) {
    RETURN_IF_ERROR(CheckLargestIntermediate(network, path, *bound));
  }
  path = WithLateGrowth(network, path);
  return EinsumPath{.network = std::move(network), .path = std::move(path), .assumes_sizes = !is_static};
}

}  // namespace tensord
