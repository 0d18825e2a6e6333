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

// The plan of a contraction: the order of its sums, the operands to pack into panels, the axes with unit stride there,
// the conjugations that the product itself does, and the most elements of each role in a box, so that panels stay
// small.
struct DotPlan {
  DotSpace space;
  std::array<bool, 2> packs = {false, false};
  std::array<bool, 2> summed_first = {false, false};
  std::array<bool, 2> product_conjugates = {false, false};
  std::array<int64_t, kNumDotRoles> most = {0, 0, 0, 0};
  bool fits_blas = true;
  bool widens_in_tiles = false;  // nothing is packed: tiles read 16-bit floats
};

// Tells whether tiles can multiply these operands, some of them 16-bit floats, as they lie.
bool WidensInTiles(const DotSpace& space, DType computed, const std::array<DotOperand, 2>& operands);

// Plans a space that is not empty. `rounds`: the result is computed into a dense box and rounded from there.
DotPlan PlanDot(const DotSpace& space, DType computed, const std::array<DotOperand, 2>& operands, bool rounds);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_CONTRACTION_PLAN_H_
