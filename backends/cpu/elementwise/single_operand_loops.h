#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_SINGLE_OPERAND_LOOPS_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_SINGLE_OPERAND_LOOPS_H_

#include <array>

#include "backends/cpu/elementwise/loops.h"

namespace tensord::cpu {

// Binary ops one operand of which is one element for all of the other's: the same bits as with that element repeated,
// without the memory to repeat it in. For the ops that constants and row statistics meet most, on I32, I64, F32 and
// F64; null for the others.
struct SingleOperandLoops {
  std::array<ElementwiseRow, kNumCoreOps> single_a;  // a[0] with each of b
  std::array<ElementwiseRow, kNumCoreOps> single_b;
  std::array<ElementwiseRow, 7> compare_single_a;  // by CompareDirection
  std::array<ElementwiseRow, 7> compare_single_b;
};

// Returns the loops of this machine's best instruction set. They live for ever.
const SingleOperandLoops& GetSingleOperandLoops();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_SINGLE_OPERAND_LOOPS_H_
