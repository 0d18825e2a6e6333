#ifndef TENSORD_ENGINE_FAMILIES_LINALG_SINGULAR_CUTOFF_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_SINGULAR_CUTOFF_H_

#include <limits>

#include "engine/tensor/dtype.h"

namespace tensord {

// Returns the distance from 1 to the next number of the dtype's real numbers.
constexpr double EpsilonOf(DType dtype) {
  const bool is_single = dtype == DType::kF32 || dtype == DType::kC64;
  return is_single ? double{std::numeric_limits<float>::epsilon()} : std::numeric_limits<double>::epsilon();
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_SINGULAR_CUTOFF_H_
