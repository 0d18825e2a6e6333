#ifndef TENSORD_BACKENDS_CUDA_DEVICE_TIMING_EVENTS_H_
#define TENSORD_BACKENDS_CUDA_DEVICE_TIMING_EVENTS_H_

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/lane.h"

namespace tensord::cuda {

// Events on a lane, which tell how long the work between them takes. No result depends on them: where a call for one
// fails, its time stays unknown, and only a lost device is an error, DEVICE_LOST. Confined to its session's thread,
// which has entered the context.
class TimingEvents {
 public:
  explicit TimingEvents(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~TimingEvents();
  TimingEvents(const TimingEvents&) = delete;
  TimingEvents& operator=(const TimingEvents&) = delete;

  // Enqueues an event. Returns null where that fails.
  absl::StatusOr<CuEvent> Record(Lane* lane);
  // Returns the time between two events that the lane has come to; nothing where one is null, or where nobody knows it.
  absl::StatusOr<std::optional<std::chrono::nanoseconds>> Between(CuEvent from, CuEvent to);
  // Takes an event back, for another record. It may be null.
  void Return(CuEvent event);

 private:
  // Tells whether a call has succeeded.
  absl::StatusOr<bool> HasSucceeded(CuResult result, absl::string_view function);

  const std::shared_ptr<Context> context_;
  std::vector<CuEvent> all_;
  std::vector<CuEvent> idle_;  // of all
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_DEVICE_TIMING_EVENTS_H_
