#ifndef TENSORD_BACKENDS_CPU_JIT_IDS_H_
#define TENSORD_BACKENDS_CPU_JIT_IDS_H_

#include <compare>
#include <cstdint>
#include <utility>

namespace tensord::cpu {

// An entry of the table of addresses that code, and the steps of a fused kernel, run with.
struct PlaceId {
  int32_t index = -1;
  friend auto operator<=>(PlaceId, PlaceId) = default;
  template <typename H>
  friend H AbslHashValue(H h, PlaceId place) {
    return H::combine(std::move(h), place.index);
  }
};

// A node of a JitProgram.
struct JitNodeId {
  int32_t index = -1;
  friend bool operator==(JitNodeId, JitNodeId) = default;
};

// A vector register of the machine.
struct RegisterId {
  int32_t index = -1;
  friend bool operator==(RegisterId, RegisterId) = default;
};

// A vector in the frame of a piece of code, for a value that no register is left for.
struct SlotId {
  int32_t index = -1;
  friend bool operator==(SlotId, SlotId) = default;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_IDS_H_
