#ifndef TENSORD_BACKENDS_CPU_REDUCE_FIRST_EXTREME_LOOPS_H_
#define TENSORD_BACKENDS_CPU_REDUCE_FIRST_EXTREME_LOOPS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// The loops of a search for the first greatest, or least, of numbers, for the machine's best instruction set.
struct FirstExtremeLoops {
  // The extreme of x[0] … x[n - 1], n > 0; true, and any value, where one of them is NaN.
  bool (*extreme)(const void* x, int64_t n, void* value) = nullptr;
  // True if a comes before b whatever their places are; neither is NaN.
  bool (*wins)(const void* a, const void* b) = nullptr;
  // The first i < n where x[i] equals *value, or with `nan` is NaN; n where there is none.
  int64_t (*find)(const void* x, int64_t n, const void* value, bool nan) = nullptr;
};

// Returns the loops of I32, I64, F32 and F64; null pointers for other dtypes.
FirstExtremeLoops GetFirstExtremeLoops(bool greatest, DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_REDUCE_FIRST_EXTREME_LOOPS_H_
