#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_DEVICE_EVENTS_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_DEVICE_EVENTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensord {

enum class DeviceFault : uint8_t {
#define TENSORD_DEVICE_FAULT(member, code, name) member,
#include "engine/runtime/devices/device_faults.def"
#undef TENSORD_DEVICE_FAULT
};

inline constexpr absl::string_view kDeviceFaultNames[] = {
#define TENSORD_DEVICE_FAULT(member, code, name) name,
#include "engine/runtime/devices/device_faults.def"
#undef TENSORD_DEVICE_FAULT
};

inline constexpr size_t kNumDeviceFaults = sizeof(kDeviceFaultNames) / sizeof(kDeviceFaultNames[0]);

// Counts of a device's runs and of their failures; a run costs it one addition. Thread-safe.
class DeviceEvents {
 public:
  struct Counts {
    int64_t segments = 0;
    std::array<int64_t, kNumDeviceFaults> faults{};
    bool is_up = true;
  };

  // Sets the function to call when a run has ended because its device lost data, on the run's thread. Before any run.
  void OnLoss(std::function<void()> lost) { lost_ = std::move(lost); }

  // Counts a run that ended with `status`, after that many segments if it succeeded. Faults of the request or its
  // client do not count. A device that lost data is down until a run succeeds again.
  void RunEnded(const absl::Status& status, int64_t segments);
  Counts counts() const;

 private:
  std::function<void()> lost_;  // empty: nobody asks
  std::atomic<int64_t> segments_{0};
  std::array<std::atomic<int64_t>, kNumDeviceFaults> faults_{};
  std::atomic<bool> is_up_{true};
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_DEVICE_EVENTS_H_
