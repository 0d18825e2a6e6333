#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_MEAN_TIME_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_MEAN_TIME_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace tensord {

// The recent duration of something: a mean in which each measurement counts an eighth, and the first one alone.
// Thread-safe; of two measurements that come at once one may be lost.
class MeanTime {
 public:
  void Add(absl::Duration time) {
    const int64_t measured = absl::ToInt64Nanoseconds(time);
    const int64_t mean = mean_ns_.load(std::memory_order_relaxed);
    mean_ns_.store(mean == 0 ? measured : mean + (measured - mean) / 8, std::memory_order_relaxed);
  }
  // Lowers the mean by a 64th: something was not done because of it, so that nothing is measured.
  void Doubt() {
    const int64_t mean = mean_ns_.load(std::memory_order_relaxed);
    mean_ns_.store(mean - mean / 64, std::memory_order_relaxed);
  }
  // Zero: nothing was measured.
  absl::Duration mean() const { return absl::Nanoseconds(mean_ns_.load(std::memory_order_relaxed)); }

 private:
  std::atomic<int64_t> mean_ns_{0};
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_MEAN_TIME_H_
