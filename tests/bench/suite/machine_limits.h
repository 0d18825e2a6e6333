#ifndef TENSORD_TESTS_BENCH_SUITE_MACHINE_LIMITS_H_
#define TENSORD_TESTS_BENCH_SUITE_MACHINE_LIMITS_H_

#include <cstdint>

#include "engine/ir/graph.h"
#include "engine/tensor/dtype.h"

namespace tensord {

// Rates that so many threads reach together, the best of a few rounds of loops in the widest vectors there are.

// Milliseconds that reading `read_bytes` and writing `written_bytes` takes at least: loads and stores past the caches
// over memory on huge pages that was touched before.
double MemoryFloorMs(int64_t read_bytes, int64_t written_bytes, int threads);

// GB/s of copies that stay in the last cache, read and written bytes both counted.
double CachedCopyRate(int threads);

// Operations a millisecond: fused multiply-adds on registers, each counted as two.
double PeakFlopsF32(int threads);
double PeakFlopsF64(int threads);

// Products of elements a millisecond, each added to a sum, on registers: of F32, F64, I32 and I64 in max_plus, min_plus
// and max_times, and of bits in or_and.
double PeakSemiringProducts(Algebra algebra, DType dtype, int threads);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_SUITE_MACHINE_LIMITS_H_
