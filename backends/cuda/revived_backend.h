#ifndef TENSORD_BACKENDS_CUDA_REVIVED_BACKEND_H_
#define TENSORD_BACKENDS_CUDA_REVIVED_BACKEND_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/memory/device_pool.h"
#include "engine/base/steady_time.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cuda {

// A device's context, and the backend that works in it: from when it is made until the context is lost.
struct Incarnation {
  std::shared_ptr<Context> context;
  std::shared_ptr<DevicePool> memory;
  std::unique_ptr<Backend> backend;
};

// Returns a backend that goes on when its context is lost (docs/why/0091). Calls that meet the loss fail with
// DEVICE_LOST, and so do calls with buffers of before, which are marked (Buffer::is_lost). When those that were under
// way have ended, the next call makes the context anew, and prepared sessions prepare themselves again in it: what
// their segments point to must outlive them. Calls that wait for that leave as CheckStopped says, but for the one that
// makes the context: no driver lets it be broken off. What tells of the device never waits for it: Describe, Memory,
// Supports. `make` returns an incarnation of the device of that name; it is called here first, and then never again
// while the one before is alive. Calls that come sooner after one that failed than a RevivalBackoff allows are refused
// with DEVICE_LOST, and told when the next try is due by the clock.
absl::StatusOr<std::unique_ptr<Backend>> MakeRevivedBackend(std::string name,
                                                            std::function<absl::StatusOr<Incarnation>()> make,
                                                            std::function<absl::Time()> clock = &SteadyNow);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_REVIVED_BACKEND_H_
