#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_PATH_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_PATH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/families/einsum/contraction_network.h"
#include "engine/families/einsum/einsum_terms.h"
#include "engine/ir/attribute.h"

namespace tensord {

inline constexpr int64_t kMaxEinsumOperands = 16'384;
// Operands times labels.
inline constexpr int64_t kMaxEinsumIncidences = int64_t{1} << 28;
// The size of a symbol if a path is chosen before sizes are known: neither 1 nor huge.
inline constexpr int64_t kSizeOfSymbol = 64;

// The order in which an einsum's operands are contracted.
struct EinsumPath {
  ContractionNetwork network;
  ContractionPath path;
  bool assumes_sizes = false;  // some sizes are symbols
};

// Returns the path that an einsum asks for, or plans one. Refused with LIMIT_EXCEEDED if the einsum is larger than the
// two limits, or if no path keeps largest_intermediate.
absl::StatusOr<EinsumPath> PathOf(const EinsumTerms& terms, const Attributes& attrs);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_EINSUM_PATH_H_
