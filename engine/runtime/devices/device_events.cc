#include "engine/runtime/devices/device_events.h"

namespace tensord {
namespace {

constexpr absl::StatusCode kFaultCodes[] = {
#define TENSORD_DEVICE_FAULT(member, code, name) absl::StatusCode::code,
#include "engine/runtime/devices/device_faults.def"
#undef TENSORD_DEVICE_FAULT
};

}  // namespace

void DeviceEvents::RunEnded(const absl::Status& status, int64_t segments) {
  if (status.ok()) {
    segments_.fetch_add(segments, std::memory_order_relaxed);
    // Read first: who runs beside this one has the line in its cache.
    if (!is_up_.load(std::memory_order_relaxed)) is_up_.store(true, std::memory_order_relaxed);
    return;
  }
  for (size_t i = 0; i < kNumDeviceFaults; ++i) {
    if (status.code() == kFaultCodes[i]) faults_[i].fetch_add(1, std::memory_order_relaxed);
  }
  if (status.code() != absl::StatusCode::kDataLoss) return;
  is_up_.store(false, std::memory_order_relaxed);
  if (lost_) lost_();
}

DeviceEvents::Counts DeviceEvents::counts() const {
  Counts counts{.segments = segments_.load(std::memory_order_relaxed),
                .faults = {},
                .is_up = is_up_.load(std::memory_order_relaxed)};
  for (size_t i = 0; i < kNumDeviceFaults; ++i) counts.faults[i] = faults_[i].load(std::memory_order_relaxed);
  return counts;
}

}  // namespace tensord
