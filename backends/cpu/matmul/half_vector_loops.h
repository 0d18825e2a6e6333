#ifndef TENSORD_BACKENDS_CPU_MATMUL_HALF_VECTOR_LOOPS_H_
#define TENSORD_BACKENDS_CPU_MATMUL_HALF_VECTOR_LOOPS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// y += A·x in F32: A has `outputs` rows of `terms` 16-bit floats, which are widened as they are read; x and y are
// dense. `step` elements lie between the columns of A, or between its rows, whichever are not dense themselves.
using HalfVectorFunction = void (*)(int64_t outputs, int64_t terms, const uint16_t* a, int64_t step, const float* x,
                                    float* y);

// Products that read a matrix once and in its order, for the machine's best instruction set.
struct HalfVectorLoops {
  HalfVectorFunction by_columns = nullptr;  // columns are dense
  HalfVectorFunction by_rows = nullptr;     // rows are
};

// Returns the loops of F16 or BF16; none if the machine has no fused multiply-add.
HalfVectorLoops GetHalfVectorLoops(DType half);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATMUL_HALF_VECTOR_LOOPS_H_
