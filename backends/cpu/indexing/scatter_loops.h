#ifndef TENSORD_BACKENDS_CPU_INDEXING_SCATTER_LOOPS_H_
#define TENSORD_BACKENDS_CPU_INDEXING_SCATTER_LOOPS_H_

#include <cstdint>

#include "engine/ops/core_ops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// Combines elements of updates into elements of dst, for the machine's best instruction set. Steps and places are in
// elements; dst and updates do not overlap.
struct ScatterLoops {
  // dst[i * dst_step] = f(dst[i * dst_step], updates[i * update_step]).
  void (*row)(void* dst, const void* updates, int64_t count, int64_t dst_step, int64_t update_step);
  // dst[into[i]] = f(dst[into[i]], updates[from[i]]), in the order of i; places may be equal.
  void (*each)(void* dst, const void* updates, const int64_t* into, const int64_t* from, int64_t count);
};

ScatterLoops GetScatterLoops(ScatterCombiner combiner, DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_INDEXING_SCATTER_LOOPS_H_
