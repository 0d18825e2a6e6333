#ifndef TENSORD_BACKENDS_CPU_FUSED_MAKE_PLAN_H_
#define TENSORD_BACKENDS_CPU_FUSED_MAKE_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "backends/cpu/fused/plan.h"
#include "backends/cpu/jit/options.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// The points of a map that are asked for.
enum class FusedPoints : uint8_t {
  kTiles,     // whole tiles, as FusedSpace cuts them
  kAnywhere,  // any, by FusedTask::RunPoints
};

// Fails with UNSUPPORTED_ON_DEVICE if an instruction has no function here.
absl::StatusOr<FusedPlan> MakeFusedPlan(const MicroProgram& program, const JitOptions& jit,
                                        FusedPoints points = FusedPoints::kTiles);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_MAKE_PLAN_H_
