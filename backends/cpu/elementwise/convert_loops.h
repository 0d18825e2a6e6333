#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_CONVERT_LOOPS_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_CONVERT_LOOPS_H_

#include <array>

#include "backends/cpu/elementwise/convert.h"

namespace tensord::cpu {

// Conversions compiled once for every instruction set. [from][to]; null if one side is a 16-bit float.
struct ConvertLoops {
  std::array<std::array<ConvertFunction, kNumDTypes + 1>, kNumDTypes + 1> pairs;
  // Doubles as floats that were rounded to odd: rounding those again, to 16 bits, is as good as rounding once.
  void (*round_to_odd)(const double* x, float* y, int64_t n);
};

// Returns the loops of this machine's best instruction set. They live for ever.
const ConvertLoops& GetConvertLoops();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_CONVERT_LOOPS_H_
