#ifndef TENSORD_BACKENDS_CPU_MACHINE_CACHE_LINE_H_
#define TENSORD_BACKENDS_CPU_MACHINE_CACHE_LINE_H_

#include <cstdint>

namespace tensord::cpu {

inline constexpr int64_t kLineBytes = 64;  // of every processor that there are kernels for
// The bytes to prefetch at once at the begin of a fresh range: the processor itself follows from there.
inline constexpr int64_t kPrefetchedBytes = 512;

// Asks for a run that is read later.
inline void PrefetchRun(const void* run, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(static_cast<const char*>(run) + at);
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MACHINE_CACHE_LINE_H_
