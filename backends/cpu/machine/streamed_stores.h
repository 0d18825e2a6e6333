#ifndef TENSORD_BACKENDS_CPU_MACHINE_STREAMED_STORES_H_
#define TENSORD_BACKENDS_CPU_MACHINE_STREAMED_STORES_H_

#include <cstdint>

namespace tensord::cpu {

// Results of at least this size do not stay in the cache, and storing past it saves reading each line first: half of
// the last-level cache, but 64 MiB at most. Constant while the process lives.
int64_t StreamedResultBytes();

// What a kernel reads and writes in all about fits the last-level cache. Then its results are streamed by one thread
// alone: several share the way to memory, which takes no more stores of two than of one where their cores share it,
// and the cache keeps most of what they store.
bool FitsLastCache(int64_t touched_bytes);

// memcpy whose stores bypass the cache. A thread's streamed stores are visible to others after FlushStreamed.
void StreamCopy(const void* src, void* dst, int64_t bytes);
void FlushStreamed();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MACHINE_STREAMED_STORES_H_
