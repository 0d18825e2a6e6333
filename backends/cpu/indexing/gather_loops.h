#ifndef TENSORD_BACKENDS_CPU_INDEXING_GATHER_LOOPS_H_
#define TENSORD_BACKENDS_CPU_INDEXING_GATHER_LOOPS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// Windows that are runs of memory, one index each: run i goes from src + clamp(indices[i * index_step], 0, limit) *
// src_step to dst + i * dst_step. Steps of src and dst in bytes, those of indices in elements.
struct RunLookup {
  const char* src = nullptr;
  char* dst = nullptr;
  const void* indices = nullptr;
  int64_t count = 0;
  int64_t limit = 0;
  int64_t index_step = 1;
  int64_t src_step = 0;
  int64_t dst_step = 0;
  int64_t run_bytes = 0;
  bool stream = false;  // past the cache, where runs are long ones
};

// The loops for elements of one width.
struct GatherLoops {
  // Elements at `from` of src to successive places of dst.
  void (*pick_run)(const void* src, void* dst, const int64_t* from, int64_t count);
  // Elements at `from` of src to the places `into` of dst.
  void (*pick_each)(const void* src, void* dst, const int64_t* from, const int64_t* into, int64_t count);
};

// element_bytes is 1, 2, 4, 8 or 16.
const GatherLoops& GetGatherLoops(int64_t element_bytes);

// Best with runs of a power of two up to 64 bytes, or long ones.
void CopyRuns(const RunLookup& lookup, DType index_dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_INDEXING_GATHER_LOOPS_H_
