#ifndef TENSORD_BACKENDS_CPU_MACHINE_CACHE_SIZES_H_
#define TENSORD_BACKENDS_CPU_MACHINE_CACHE_SIZES_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tensord::cpu {

// Bytes of the data caches that a core can use, as the kernel reports them; common sizes where it does not.
struct CacheSizes {
  int64_t l1 = int64_t{32} << 10;
  int64_t l2 = int64_t{512} << 10;
  int64_t last_level = int64_t{32} << 20;
};

// Reads a folder in the form of /sys/devices/system/cpu/cpu0/cache. Sizes that cannot be read keep their defaults.
CacheSizes ReadCacheSizes(absl::string_view folder);

// Returns the sizes of this machine, read once. (sysconf is no source: glibc multiplies the last level by the threads
// that it believes to share it, which under a hypervisor came to ten times its size.)
const CacheSizes& MachineCacheSizes();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MACHINE_CACHE_SIZES_H_
