#ifndef TENSORD_BACKENDS_CPU_LAYOUT_RUN_COPY_H_
#define TENSORD_BACKENDS_CPU_LAYOUT_RUN_COPY_H_

#include "backends/cpu/layout/strided_copy.h"
#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {

// Runs a planned copy, spread over the pool if that is worthwhile.
inline void RunCopy(const StridedCopy& copy, const void* from, void* into, ThreadPool* pool) {
  if (copy.num_tasks() <= 1) {
    copy.Run(from, into);
  } else {
    pool->ParallelFor(copy.num_tasks(), [&](int64_t task) { copy.RunTask(task, from, into); });
  }
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LAYOUT_RUN_COPY_H_
