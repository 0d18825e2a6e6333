#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_LOOPS_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_LOOPS_H_

#include <array>

#include "backends/cpu/elementwise/elementwise.h"

namespace tensord::cpu {

// Routines by DType; index 0 (kInvalid) is null.
using ElementwiseRow = std::array<ElementwiseFunction, kNumDTypes + 1>;

// The ops that a compiler vectorises well from their scalar meaning (arithmetic, logic, rounding, comparisons),
// compiled once for every instruction set. Null for the other ops and dtypes.
struct ElementwiseLoops {
  std::array<ElementwiseRow, kNumCoreOps> ops;
  std::array<ElementwiseRow, 7> compares;  // by CompareDirection
};

// Returns the loops of this machine's best instruction set. They live for ever.
const ElementwiseLoops& GetElementwiseLoops();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_LOOPS_H_
