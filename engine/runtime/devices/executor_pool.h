#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_EXECUTOR_POOL_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_EXECUTOR_POOL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/runtime/devices/device_executor.h"

namespace tensord {

// The executors of all devices, by name; the first one added is the default. Filled before use, immutable afterwards,
// and so thread-safe.
class ExecutorPool {
 public:
  void Add(std::unique_ptr<DeviceExecutor> executor) { executors_.push_back(std::move(executor)); }

  // Finds "cpu:0", or "cpu" for the first device of a kind, or empty for the default. DEVICE_UNKNOWN names those that
  // exist.
  absl::StatusOr<DeviceExecutor*> Find(absl::string_view device) const;
  // Tells whether one of them has refused a run since `time` because of the waiting ones.
  bool WasFullSince(absl::Time time) const;
  const std::vector<std::unique_ptr<DeviceExecutor>>& all() const { return executors_; }

 private:
  std::vector<std::unique_ptr<DeviceExecutor>> executors_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_EXECUTOR_POOL_H_
