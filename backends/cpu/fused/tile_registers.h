#ifndef TENSORD_BACKENDS_CPU_FUSED_TILE_REGISTERS_H_
#define TENSORD_BACKENDS_CPU_FUSED_TILE_REGISTERS_H_

#include <cstdint>

#include "backends/cpu/fused/plan.h"

namespace tensord::cpu {

// Gives the values of tiles registers, whose numbers become the places' offsets; returns how many the stage takes that
// needs most. Stages share them.
int64_t AllocateRegisters(FusedPlan* plan);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_TILE_REGISTERS_H_
