#ifndef TENSORD_BACKENDS_CPU_CPU_BACKEND_H_
#define TENSORD_BACKENDS_CPU_CPU_BACKEND_H_

#include <cstdint>
#include <memory>

#include "engine/exec/backend.h"

namespace tensord {

struct CpuBackendOptions {
  int threads = 0;                           // of the pool that kernels share, the caller included; 0: one a core
  int64_t pool_bytes = int64_t{1} << 30;     // free buffers kept for reuse
};

// The native CPU: Highway kernels and OpenBLAS under one pool of threads for the process. Buffers are host memory.
std::unique_ptr<Backend> MakeCpuBackend(const CpuBackendOptions& options);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CPU_CPU_BACKEND_H_
