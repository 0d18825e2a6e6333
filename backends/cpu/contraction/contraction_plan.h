#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_CONTRACTION_PLAN_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_CONTRACTION_PLAN_H_

#include <array>
#include <cstdint>

#include "backends/cpu/contraction/operands/axes.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

struct DotOperand {
  DType dtype = DType::kInvalid;
  bool conjugates = false;
};

// How a contraction is done: in which order it sums up, which operands are packed into panels, which get unit stride
// along the summed axes there, which conjugations the product itself does, and into boxes of how many elements of each
// role it is cut so that panels stay small.
struct DotPlan {
  DotSpace space;
  std::array<bool, 2> packs = {false, false};
  std::array<bool, 2> summed_first = {false, false};
  std::array<bool, 2> product_conjugates = {false, false};
  std::array<int64_t, kNumDotRoles> most = {0, 0, 0, 0};
  bool fits_blas = true;
  bool widens_in_tiles = false;  // nothing is packed: tiles read 16-bit floats
};

// Whether tiles can multiply operands of which some are 16-bit floats as these lie.
bool WidensInTiles(const DotSpace& space, DType computed, const std::array<DotOperand, 2>& operands);

// Of a space that is not empty. `rounds`: the result is computed into a dense box and rounded from there.
DotPlan PlanDot(const DotSpace& space, DType computed, const std::array<DotOperand, 2>& operands, bool rounds);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_CONTRACTION_PLAN_H_
