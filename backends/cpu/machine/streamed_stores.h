#ifndef TENSORD_BACKENDS_CPU_MACHINE_STREAMED_STORES_H_
#define TENSORD_BACKENDS_CPU_MACHINE_STREAMED_STORES_H_

#include <cstdint>

namespace tensord::cpu {

// Results of at least this size do not stay in the cache, and storing past it saves reading each line first: half of
// the last-level cache, but 64 MiB at most. Constant while the process lives.
int64_t StreamedResultBytes();

// Tells whether the bytes that a kernel reads and writes about fit the last-level cache. Then one thread alone streams
// its results. Two cores that share the way to memory store no faster than one, and the cache keeps most of what
// several threads store.
bool FitsLastCache(int64_t touched_bytes);

// memcpy whose stores bypass the cache. A thread's streamed stores are visible to others after FlushStreamed.
void StreamCopy(const void* src, void* dst, int64_t bytes);
void FlushStreamed();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MACHINE_STREAMED_STORES_H_
