#ifndef TENSORD_BACKENDS_CUDA_REVIVAL_BACKOFF_H_
#define TENSORD_BACKENDS_CUDA_REVIVAL_BACKOFF_H_

#include <algorithm>

#include "absl/time/time.h"

namespace tensord::cuda {

// When a device is to be made anew after that has failed: making a context may take the driver seconds, and calls come
// by the thousand. The pause doubles with each failure. A new one has no pause. Thread-compatible.
class RevivalBackoff {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(100);
  static constexpr absl::Duration kMost = absl::Seconds(30);

  void Failed(absl::Time now) {
    pause_ = std::clamp(2 * pause_, kFirst, kMost);
    due_ = now + pause_;
  }
  // Zero: it is due.
  absl::Duration Left(absl::Time now) const { return std::max(due_ - now, absl::ZeroDuration()); }

 private:
  absl::Duration pause_;
  absl::Time due_ = absl::InfinitePast();
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_REVIVAL_BACKOFF_H_
