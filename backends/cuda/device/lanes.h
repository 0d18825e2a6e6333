#ifndef TENSORD_BACKENDS_CUDA_DEVICE_LANES_H_
#define TENSORD_BACKENDS_CUDA_DEVICE_LANES_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/lane.h"
#include "engine/base/mutex.h"

namespace tensord::cuda {

// The lanes of a device: made when they are first needed, up to a number, and lent one after the other. Thread-safe.
// Loans must be over before it goes, and the libraries must outlive it.
class Lanes {
 public:
  // A lane until it goes back. What is on its way then, as an exception may leave it, is waited for.
  using Loan = std::unique_ptr<Lane, std::function<void(Lane*)>>;

  // `pinned` as in Lane::Create.
  Lanes(std::shared_ptr<Context> context, Libraries* libraries, int most, PinnedBlocks* pinned = nullptr);

  // Lends a lane to the calling thread, which has entered the context. Waits while all are lent, and leaves as
  // CheckStopped says. Fails as Lane::Create does.
  absl::StatusOr<Loan> Borrow();

 private:
  void TakeBack(std::unique_ptr<Lane> lane);

  const std::shared_ptr<Context> context_;
  Libraries* const libraries_;
  PinnedBlocks* const pinned_;
  const int most_;
  Mutex mutex_;
  CondVar returned_;
  int made_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Lane>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_DEVICE_LANES_H_
