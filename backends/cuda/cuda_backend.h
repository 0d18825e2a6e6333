#ifndef TENSORD_BACKENDS_CUDA_CUDA_BACKEND_H_
#define TENSORD_BACKENDS_CUDA_CUDA_BACKEND_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/cuda/compile/cubin_store.h"
#include "backends/cuda/device/device_counts.h"
#include "backends/cuda/device/pinned_blocks.h"
#include "backends/cuda/libraries/libraries.h"
#include "engine/base/steady_time.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/backend/parallel_for.h"
#include "engine/exec/memory/host_buffer_pool.h"

namespace tensord {

struct CudaBackendOptions {
  cuda::Libraries* libraries = nullptr;  // must outlive the backend
  int ordinal = 0;
  int lanes = 4;  // runs and moves of bytes at once
  // Bytes of the device's memory that tensors may take; -1: those that are free now, but for 1.5 GiB, which contexts
  // and libraries take, or for half of them if there is less.
  int64_t tensor_bytes = -1;
  std::shared_ptr<HostBufferPool> host_memory;  // for tensors that leave the device
  std::shared_ptr<cuda::PinnedBlocks> pinned;   // of that memory and others, over all devices; null: there are none
  std::shared_ptr<cuda::CubinStore> cubins;     // null: one of its own, in memory
  ParallelFor parallel = {};                    // on which the kernels of a program are compiled; empty: one by one
  std::shared_ptr<cuda::DeviceCounts> counts;   // null: nobody reads them
  // Work of a run that may be ahead of the device, by the times that its steps took before (cuda::WorkAhead).
  std::chrono::nanoseconds most_ahead = std::chrono::milliseconds(20);
  std::function<absl::Time()> clock = &SteadyNow;  // for the pauses after a revival that failed
  int64_t most_division_steps = 0;                 // cuda::KernelContext has them; 0: as many as there
  int64_t most_call_products = 0;                  // likewise
};

// Returns the backend of a CUDA device, which goes on when the device's context is lost (revived_backend.h).
// UNAVAILABLE, with the words of cuda::DeviceIsNotThere, if the driver gives none.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const CudaBackendOptions& options);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CUDA_BACKEND_H_
