#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_MODE_PRODUCT_LOOPS_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_MODE_PRODUCT_LOOPS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// Rows of the matrix that are multiplied together.
inline constexpr int64_t kModeRows = 4;

// Runs of elements, of which each becomes as many as the matrix has rows: for element i of run r
//   y[row_offsets[j] + r * y_step + i] = sum over t of matrix(j, t) * x[term_offsets[t] + r * x_step + i].
// Steps and offsets count elements.
struct ModeProductRuns {
  int64_t length = 0;
  int64_t count = 0;
  int64_t x_step = 0;
  int64_t y_step = 0;
  // The distance at which memory is asked for ahead.
  int64_t x_ahead = 0;
  int64_t y_ahead = 0;
  int64_t terms = 0;
  int64_t rows = 0;
  const int64_t* term_offsets = nullptr;
  const int64_t* row_offsets = nullptr;
  // Blocks of kModeRows rows, the last one with the rest: each block term after term, the rows side by side.
  const void* matrix = nullptr;
  bool conjugates = false;  // y
};

// `run_bytes` is the length of a run, by which the width of vectors is chosen. F32, F64 and complex numbers, for the
// machine's best instruction set; null if there is none. Each sum is fused, in the order of the terms, wherever its
// element lies.
using ModeProductFunction = void (*)(const ModeProductRuns& runs, const void* x, void* y);
ModeProductFunction GetModeProductLoop(DType dtype, int64_t run_bytes);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_MODE_PRODUCT_LOOPS_H_
