#ifndef TENSORD_BACKENDS_CPU_ELEMENTWISE_STREAM_H_
#define TENSORD_BACKENDS_CPU_ELEMENTWISE_STREAM_H_

#include <cstdint>

namespace tensord::cpu {

// Results of at least this size do not stay in the cache, and storing past it saves reading each line first: half of
// the last-level cache, but 64 MiB at most. Constant while the process lives.
int64_t StreamedResultBytes();

// memcpy whose stores bypass the cache. A thread's streamed stores are visible to others after FlushStreamed.
void StreamCopy(const void* src, void* dst, int64_t bytes);
void FlushStreamed();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_ELEMENTWISE_STREAM_H_
