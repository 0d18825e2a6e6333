#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_PATH_SEARCH_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_PATH_SEARCH_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/families/einsum/contraction_network.h"

namespace tensord {

// The values are those of tensord.einsum.v1.Einsum.Optimizer.
enum class PathOptimizer : uint8_t { kAuto = 0, kGreedy = 1, kOptimal = 2, kLeftToRight = 3 };

// The most steps of a search, of about a nanosecond each, unless tensors have thousands of labels.
inline constexpr int64_t kMostSearchSteps = 1'000'000'000;

// Searches a path for the network, the same on every machine. kAuto: the best one for few operands. For more, greedy
// ones of several kinds; the best of them is annealed and improved by its subtrees, within a budget that is counted in
// steps and takes a fraction of a second. kOptimal takes at most OptimalSearch::kMaxTensors operands.
//
// With `largest_intermediate` no step but the last makes a tensor of more elements; refused with LIMIT_EXCEEDED if the
// search finds no such path. Without it very large intermediates are only avoided.
//
// `steps`, if given, gets the steps that the searches of kAuto and kGreedy took.
absl::StatusOr<ContractionPath> SearchPath(const ContractionNetwork& network, PathOptimizer optimizer,
                                           std::optional<int64_t> largest_intermediate, int64_t* steps = nullptr);

// Checks that a path keeps the bound; LIMIT_EXCEEDED otherwise.
absl::Status CheckLargestIntermediate(const ContractionNetwork& network, const ContractionPath& path,
                                      int64_t largest_intermediate);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_PATH_SEARCH_H_
