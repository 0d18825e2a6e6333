#ifndef TENSORD_BACKENDS_CPU_MACHINE_CACHE_LINE_H_
#define TENSORD_BACKENDS_CPU_MACHINE_CACHE_LINE_H_

#include <cstdint>

namespace tensord::cpu {

inline constexpr int64_t kLineBytes = 64;
// Of what is read from a place that was not read before: so much is asked for at once, the processor follows by itself.
inline constexpr int64_t kPrefetchedBytes = 512;

// Asks for a run that is read later.
inline void PrefetchRun(const void* run, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(static_cast<const char*>(run) + at);
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MACHINE_CACHE_LINE_H_
