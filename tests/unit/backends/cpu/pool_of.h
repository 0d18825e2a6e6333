#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_POOL_OF_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_POOL_OF_H_

#include "backends/cpu/machine/blas.h"
#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {

// One to four threads; a pool for each count, for the whole program. BLAS has one thread from then on.
inline ThreadPool& PoolOf(int threads) {
  UseSerialBlas();
  static ThreadPool one(1), two(2), three(3), four(4);
  ThreadPool* const pools[] = {&one, &two, &three, &four};
  return *pools[threads - 1];
}

}  // namespace tensord::cpu

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_POOL_OF_H_
