#ifndef TENSORD_BACKENDS_CUDA_MEMORY_DEVICE_POOL_H_
#define TENSORD_BACKENDS_CUDA_MEMORY_DEVICE_POOL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/memory/address_range.h"
#include "engine/base/mutex.h"
#include "engine/exec/backend/buffer.h"
#include "engine/exec/backend/memory_stats.h"
#include "engine/exec/memory/memory_holes.h"

namespace tensord::cuda {

// The memory of a device for tensors, within a limit. Pieces are the smallest free ones that fit, and are joined when
// they come back: equal runs find equal addresses. Memory is taken of the device when it is needed, and given back when
// there is none left. Without virtual memory each piece is an allocation of the driver's. Thread-safe; buffers keep it
// alive. Nothing on the device may touch a buffer when its last owner lets go.
class DevicePool : public std::enable_shared_from_this<DevicePool> {
 public:
  struct Options {
    int64_t limit_bytes = 0;
    std::string limit_name = "limit_bytes";  // in refusals
    // Without it the driver is asked. Only for tests, and never where the device has none.
    bool uses_virtual_memory = true;
  };

  // The calling thread has entered the context. Fails as the driver does.
  static absl::StatusOr<std::shared_ptr<DevicePool>> Create(std::shared_ptr<Context> context, const Options& options);

  int64_t limit_bytes() const { return options_.limit_bytes; }

  // Returns memory aligned to 256 bytes, contents undefined; of zero bytes too. OUT_OF_MEMORY, counted: names the
  // limit, or the driver's function if the device has less. The calling thread has entered the context.
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes);
  // Gives memory back in which no tensor lies.
  void Trim();
  // Gives all memory back when the context is lost and another has taken its place.
  void GiveUp();
  // Tells whether each address is one of its memory, or null.
  bool HasAll(absl::Span<void* const> addresses) const;

  MemoryStats stats() const;

 private:
  DevicePool(std::shared_ptr<Context> context, Options options);
  absl::StatusOr<CuAddress> TakeLocked(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<CuAddress> TakeOfRangeLocked(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TrimLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsUsedLocked(int64_t begin, int64_t end) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(CuAddress address, int64_t bytes);

  const std::shared_ptr<Context> context_;
  const Options options_;
  mutable Mutex mutex_;
  std::unique_ptr<AddressRange> range_ ABSL_GUARDED_BY(mutex_);  // null without virtual memory
  MemoryHoles holes_ ABSL_GUARDED_BY(mutex_);
  // Pieces in use: offset → bytes. Without virtual memory the offset is the address.
  std::map<int64_t, int64_t> pieces_ ABSL_GUARDED_BY(mutex_);
  MemoryStats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_MEMORY_DEVICE_POOL_H_
