#ifndef TENSORD_TESTS_BENCH_FUSED_BANDWIDTH_H_
#define TENSORD_TESTS_BENCH_FUSED_BANDWIDTH_H_

#include <cstdint>

namespace tensord {

// Milliseconds that reading `read_bytes` and writing `written_bytes` takes at least: loops of wide loads and of stores
// past the caches over memory that was touched before, shared by so many threads, the best of a few rounds.
double MemoryFloorMs(int64_t read_bytes, int64_t written_bytes, int threads);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_FUSED_BANDWIDTH_H_
