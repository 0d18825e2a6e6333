#include "engine/runtime/devices/executor_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/refusal.h"

namespace tensord {

absl::StatusOr<DeviceExecutor*> ExecutorPool::Find(absl::string_view device) const {
  for (const std::unique_ptr<DeviceExecutor>& executor : executors_) {
    if (device.empty() || device == executor->device() || device == executor->backend()->kind()) return executor.get();
  }
  return Refuse(Refusal::kDeviceUnknown,
                absl::StrCat("there is no device \"", device, "\"; there are ",
                             absl::StrJoin(executors_, ", ", [](std::string* out, const auto& executor) {
                               absl::StrAppend(out, executor->device());
                             })));
}

bool ExecutorPool::WasFullSince(absl::Time time) const {
  return std::any_of(executors_.begin(), executors_.end(),
                     [time](const auto& executor) { return executor->last_full() >= time; });
}

}  // namespace tensord
