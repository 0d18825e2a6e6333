#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_LANE_PRODUCT_LOOPS_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_LANE_PRODUCT_LOOPS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// Products of many small matrices whose elements lie across the matrices: for matrix i
//   c[(column * rows + row) * length + i] =
//       sum over t of a[(t * rows + row) * step + i] * b[(t * columns + column) * step + i].
struct LaneProducts {
  int64_t length = 0;  // matrices
  int64_t step = 0;    // at least `length`
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t terms = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
};

// F32 and F64, for the machine's best instruction set; null if there is none. Each sum is fused, in the order of the
// terms. Reads and writes nothing past `length`.
using LaneProductFunction = void (*)(const LaneProducts& products);
LaneProductFunction GetLaneProductLoop(DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_LANE_PRODUCT_LOOPS_H_
