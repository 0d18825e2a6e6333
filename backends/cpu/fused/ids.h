#ifndef TENSORD_BACKENDS_CPU_FUSED_IDS_H_
#define TENSORD_BACKENDS_CPU_FUSED_IDS_H_

#include <cstdint>

#include "backends/cpu/jit/ids.h"

namespace tensord::cpu {

// The positions of a FusedPlan's parts; -1: none. Those of its places are PlaceIds.

// A tensor, or the integers, as the plan reads or writes them.
struct AccessId {
  int32_t index = -1;
  friend bool operator==(AccessId, AccessId) = default;
};

// A reduction.
struct FoldId {
  int32_t index = -1;
  friend bool operator==(FoldId, FoldId) = default;
};

// A piece of code.
struct RunId {
  int32_t index = -1;
  friend bool operator==(RunId, RunId) = default;
};

// A row of memory for a value that later stages read again.
struct SavedId {
  int32_t index = -1;
  friend bool operator==(SavedId, SavedId) = default;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_IDS_H_
