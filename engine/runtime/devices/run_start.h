#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_RUN_START_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_RUN_START_H_

#include <atomic>
#include <chrono>

namespace tensord {

// The start of a run, if it has begun, and its time. Thread-safe.
class RunStart {
 public:
  using Clock = std::chrono::steady_clock;

  void Mark(Clock::time_point now) { nanoseconds_.store(now.time_since_epoch().count(), std::memory_order_release); }
  bool has_begun() const { return nanoseconds_.load(std::memory_order_acquire) != 0; }
  // Returns the clock's beginning where it has not begun.
  Clock::time_point time() const {
    return Clock::time_point(Clock::duration(nanoseconds_.load(std::memory_order_acquire)));
  }

 private:
  std::atomic<Clock::rep> nanoseconds_{0};
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_RUN_START_H_
