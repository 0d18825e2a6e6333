#ifndef TENSORD_BACKENDS_CUDA_STEP_TIMES_H_
#define TENSORD_BACKENDS_CUDA_STEP_TIMES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/mutex.h"

namespace tensord::cuda {

// How long the device takes for each step of a session, as far as runs have found. A step may have parts, which take
// the same time. Thread-safe.
class StepTimes {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  explicit StepTimes(size_t steps) : unknown_(steps), steps_(steps) {}

  // Notes that the numbers that a step is given decide how long it takes: no run tells of the next one.
  void SetVaries(size_t step);
  // Notes in how many parts a step is enqueued; one until then. Its time stays.
  void SetParts(size_t step, int64_t parts);
  int64_t PartsOf(size_t step) const;
  // Returns the time of a step, of one of its parts, or of all steps. `unknown` counts for what was not measured: for a
  // part, and for all of a step. A part of one that varies takes no less.
  Nanoseconds Of(size_t step, Nanoseconds unknown) const;
  Nanoseconds OfPart(size_t step, Nanoseconds unknown) const;
  Nanoseconds OfAll(Nanoseconds unknown) const;
  // Tells whether each was measured.
  bool AreKnown() const;

  // Some parts of a step.
  struct Work {
    size_t step = 0;
    int64_t parts = 0;
  };
  // Splits the time that they took together among them, in proportion to the times that they had.
  void Learn(absl::Span<const Work> work, Nanoseconds took, Nanoseconds unknown);

 private:
  struct Step {
    int64_t parts = 1;
    Nanoseconds part{0};  // 0: unknown
    bool varies = false;
    Nanoseconds whole() const { return part * parts; }
    Nanoseconds OfPart(Nanoseconds unknown) const {
      return part.count() == 0 || (varies && part < unknown) ? unknown : part;
    }
    Nanoseconds Of(Nanoseconds unknown) const {
      return part.count() == 0 && !varies ? unknown : OfPart(unknown) * parts;
    }
  };

  mutable Mutex mutex_;
  size_t unknown_ ABSL_GUARDED_BY(mutex_);        // steps
  Nanoseconds known_ ABSL_GUARDED_BY(mutex_){0};  // of the others together
  std::vector<Step> steps_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> varying_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_STEP_TIMES_H_
