#ifndef TENSORD_BACKENDS_CUDA_DEVICE_CONTEXT_H_
#define TENSORD_BACKENDS_CUDA_DEVICE_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "backends/cuda/device/device_counts.h"
#include "backends/cuda/libraries/libraries.h"

namespace tensord::cuda {

// The primary context of a device, held for as long as this object lives. A thread enters it before it calls the driver
// for the device. Once a call reports an error that stays (IsLost), the context is lost: Enter refuses from then on.
// Thread-safe. The driver must outlive it.
class Context {
 public:
  // Returns the vendor's name of a device, "NVIDIA H200", without a context. UNAVAILABLE, with the words of
  // DeviceIsNotThere, if the driver knows no such device.
  static absl::StatusOr<std::string> ModelOf(const Driver* driver, int ordinal);
  // UNAVAILABLE, with the words of DeviceIsNotThere, if the driver knows no such device or gives no context. `counts`
  // are those of the device, over this context and the ones before; null: this one's own.
  static absl::StatusOr<std::shared_ptr<Context>> Create(const Driver* driver, int ordinal,
                                                         std::shared_ptr<DeviceCounts> counts = nullptr);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return *driver_; }
  CuDevice device() const { return device_; }
  const std::string& model() const { return model_; }  // "NVIDIA H200"
  DeviceCounts& counts() const { return *counts_; }

  // Makes it the context of the calling thread. DEVICE_LOST.
  absl::Status Enter();
  // Enters it, has a function call the driver, and gives the thread back the context that it had. The status of
  // entering, or the function's.
  absl::Status Visit(absl::FunctionRef<absl::Status()> work);
  // Returns the status of a call of the driver that ended with `result`, as StatusOf does; notes a loss.
  absl::Status Check(CuResult result, absl::string_view function);
  // Declares the context lost: work may still go on that cannot be waited for.
  void Lose();
  bool is_lost() const { return is_lost_->load(); }
  // Returns the flag of what is_lost tells, for memory that goes with the context.
  std::shared_ptr<const std::atomic<bool>> loss() const { return is_lost_; }
  // Gives a lost context up, and ends it, so that another can be made. No thread may be in a call of the driver for it.
  void End();

  // Returns an attribute of the device, by its number in abi/driver.h.
  absl::StatusOr<int> Attribute(int attribute);
  // Returns the bytes of the device's memory that are free. The context is entered.
  absl::StatusOr<int64_t> FreeBytes();

 private:
  Context(const Driver* driver, std::shared_ptr<DeviceCounts> counts)
      : driver_(driver), counts_(counts == nullptr ? std::make_shared<DeviceCounts>() : std::move(counts)) {}
  absl::Status Open(int ordinal);
  absl::Status Find(int ordinal);

  const Driver* const driver_;
  const std::shared_ptr<DeviceCounts> counts_;
  CuDevice device_ = 0;  // constant after Create, like those below
  CuContext context_ = nullptr;
  std::string model_;
  const std::shared_ptr<std::atomic<bool>> is_lost_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_DEVICE_CONTEXT_H_
