#ifndef TENSORD_BACKENDS_CPU_FUSED_STAGES_H_
#define TENSORD_BACKENDS_CPU_FUSED_STAGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/fused/ids.h"
#include "engine/base/id_vector.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// Computing an instruction at one point, in the time of an addition of vectors.
int64_t ComputingCost(const MicroProgram& program, const MicroInstruction& instruction);

// The values that a tile computes, with their places and their lives.
struct FusedStagesRequest {
  std::vector<bool> is_live;  // by value: a result depends on it
  std::vector<bool> is_full;  // by value: it has an element at each point of a group
  // True for results whose memory may hold other values until they are written, by result.
  std::vector<bool> lends_memory;
  // True if kept values go through memory, so that much may be computed once more in their stead.
  bool is_large = false;
};

// The values at all points of a group that each stage computes, and those it keeps for later stages. A value that
// several stages need is kept, unless computing it again is cheaper than reading it. So the work of a program is in
// proportion to its instructions: a value is computed twice at most, but for values a few cheap operations away from
// available ones. Values that are kept one after the other share a slot. A value type.
struct FusedStages {
  struct Slot {
    int64_t element_bytes = 0;
    int32_t result = -1;  // in that result's memory; -1: in memory of its own
  };

  std::vector<std::vector<bool>> needed;  // by stage, by value: that the stage computes or reads
  std::vector<int32_t> first;             // by value: the stage that computes it first; -1: none
  std::vector<SavedId> slot;              // by value: where it is kept; none: it is computed wherever it is needed
  IdVector<SavedId, Slot> slots;

  bool Computes(int32_t stage, size_t value) const {
    return needed[static_cast<size_t>(stage)][value] && (slot[value].index < 0 || first[value] == stage);
  }
  // Returns the bytes of a point's own memory.
  int64_t own_bytes() const;
};

FusedStages FindFusedStages(const MicroProgram& program, const FusedStagesRequest& request);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_STAGES_H_
