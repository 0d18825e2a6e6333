#ifndef TENSORD_BACKENDS_CUDA_MEMORY_DEVICE_POOL_H_
#define TENSORD_BACKENDS_CUDA_MEMORY_DEVICE_POOL_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
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
// there is none left, or where the limit is met: what lies behind pieces and between them is within it too, rounded up
// to a granule. Large pieces have the low end of the addresses and small ones the high end, whose memory goes back in
// granules: a small piece that stays keeps two of them at most beside its own bytes, and not what large ones have left.
// Where an end can have no more, the holes of the other serve. Without virtual memory each piece is an allocation of
// the driver's. Thread-safe; buffers keep it alive. Nothing on the device may touch a buffer when its last owner lets
// go.
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
  // limit, of which holes between pieces may take a part, or the driver's function if the device has less. The calling
  // thread has entered the context.
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes);
  // Gives memory back in which no tensor lies.
  void Trim();
  // Gives all memory back when the context is lost and another has taken its place.
  void GiveUp();
  // Tells whether each address is one of its memory, or null.
  bool HasAll(absl::Span<void* const> addresses) const;

  MemoryStats stats() const;

 private:
  enum class End { kLow, kHigh };

  DevicePool(std::shared_ptr<Context> context, Options options);
  absl::StatusOr<CuAddress> TakeLocked(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<CuAddress> TakeOfRangeLocked(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a piece at an end of the addresses, with memory behind it. Returns its offset.
  absl::StatusOr<int64_t> TakeAtLocked(End end, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<int64_t> TakeHoleLocked(End end, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeHoleLocked(int64_t offset, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Backs a piece, which is among those in use.
  absl::Status BackLocked(End end, int64_t offset, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TrimLocked(int64_t enough_bytes = std::numeric_limits<int64_t>::max()) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsUsedLocked(int64_t begin, int64_t end) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(CuAddress address, int64_t bytes);

  const std::shared_ptr<Context> context_;
  const Options options_;
  mutable Mutex mutex_;
  std::unique_ptr<AddressRange> range_ ABSL_GUARDED_BY(mutex_);  // null without virtual memory
  MemoryHoles low_ ABSL_GUARDED_BY(mutex_);                      // of the low end
  MemoryHoles high_ ABSL_GUARDED_BY(mutex_);                     // of the high end, from which it counts downwards
  // Pieces in use: offset → bytes. Without virtual memory the offset is the address.
  std::map<int64_t, int64_t> pieces_ ABSL_GUARDED_BY(mutex_);
  MemoryStats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_MEMORY_DEVICE_POOL_H_
