#ifndef TENSORD_BACKENDS_CUDA_STEP_TIMES_H_
#define TENSORD_BACKENDS_CUDA_STEP_TIMES_H_

#include <chrono>
#include <cstddef>
#include <vector>

#include "engine/base/mutex.h"

namespace tensord::cuda {

// How long the device takes for each step of a session, as far as runs have found. Thread-safe.
class StepTimes {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  explicit StepTimes(size_t steps) : unknown_(steps), steps_(steps) {}

  // Returns the time of some steps that follow each other, or of all. `unknown` counts for each that was not measured.
  Nanoseconds Of(size_t begin, size_t end, Nanoseconds unknown) const;
  Nanoseconds OfAll(Nanoseconds unknown) const;
  // Tells whether each was measured.
  bool AreKnown() const;
  // Splits the time that some steps took together among them, in proportion to the times that they had.
  void Learn(size_t begin, size_t end, Nanoseconds took, Nanoseconds unknown);

 private:
  Nanoseconds OfLocked(size_t begin, size_t end, Nanoseconds unknown) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  size_t unknown_ ABSL_GUARDED_BY(mutex_);                  // steps
  Nanoseconds known_ ABSL_GUARDED_BY(mutex_){0};            // of the others together
  std::vector<Nanoseconds> steps_ ABSL_GUARDED_BY(mutex_);  // 0: unknown
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_STEP_TIMES_H_
