#ifndef TENSORD_BACKENDS_CUDA_DEVICE_PACE_H_
#define TENSORD_BACKENDS_CUDA_DEVICE_PACE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace tensord::cuda {

// A run's distance from the device, as its kernels keep it. A kernel that takes long, a call of a library for each
// matrix of a batch for example, asks before each of its parts. Confined to its run's thread.
class Pace {
 public:
  virtual ~Pace() = default;
  // Waits until a part may be enqueued: `part`, from 0, of `parts`, which take about as long as each other. Those
  // before it are enqueued. Fails when nobody wants the run any more; the kernel passes that on and enqueues no more.
  virtual absl::Status BeforePart(int64_t part, int64_t parts) = 0;
};

// The pace of a kernel's last parts, which are parts of a text: `before` others come ahead of them.
class PaceBehind final : public Pace {
 public:
  // `pace` may be null.
  PaceBehind(Pace* pace, int64_t before) : pace_(pace), before_(before) {}
  absl::Status BeforePart(int64_t part, int64_t parts) override {
    return pace_ == nullptr ? absl::OkStatus() : pace_->BeforePart(before_ + part, before_ + parts);
  }

 private:
  Pace* const pace_;
  const int64_t before_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_DEVICE_PACE_H_
