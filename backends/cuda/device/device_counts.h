#ifndef TENSORD_BACKENDS_CUDA_DEVICE_DEVICE_COUNTS_H_
#define TENSORD_BACKENDS_CUDA_DEVICE_DEVICE_COUNTS_H_

#include <atomic>
#include <cstdint>

namespace tensord::cuda {

// Counts of one device since the start, over all its contexts. Thread-safe.
struct DeviceCounts {
  // Bytes of the copies that lanes enqueued: over the bus to the device and from it, and on the device.
  std::atomic<int64_t> to_device_bytes{0};
  std::atomic<int64_t> from_device_bytes{0};
  std::atomic<int64_t> within_bytes{0};
  // Bytes of those over the bus that went to and from pinned blocks, without a lane's ring.
  std::atomic<int64_t> direct_to_bytes{0};
  std::atomic<int64_t> direct_from_bytes{0};
  // Contexts that were lost, those that took their place, and attempts at one that failed.
  std::atomic<int64_t> lost{0};
  std::atomic<int64_t> revived{0};
  std::atomic<int64_t> failed_revivals{0};
  // Graphs that were captured, their launches, attempts at a capture that failed, and graphs that are there now.
  std::atomic<int64_t> captured_graphs{0};
  std::atomic<int64_t> launched_graphs{0};
  std::atomic<int64_t> failed_captures{0};
  std::atomic<int64_t> graphs{0};
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_DEVICE_DEVICE_COUNTS_H_
