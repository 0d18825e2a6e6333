#include "backends/cuda/step_times.h"

#include <algorithm>

namespace tensord::cuda {

StepTimes::Nanoseconds StepTimes::OfLocked(size_t begin, size_t end, Nanoseconds unknown) const {
  Nanoseconds sum{0};
  for (size_t i = begin; i < end; ++i) sum += steps_[i].count() == 0 ? unknown : steps_[i];
  return sum;
}

StepTimes::Nanoseconds StepTimes::Of(size_t begin, size_t end, Nanoseconds unknown) const {
  MutexLock lock(&mutex_);
  return OfLocked(begin, end, unknown);
}

StepTimes::Nanoseconds StepTimes::OfAll(Nanoseconds unknown) const {
  MutexLock lock(&mutex_);
  return known_ + unknown * static_cast<int64_t>(unknown_);
}

bool StepTimes::AreKnown() const {
  MutexLock lock(&mutex_);
  return unknown_ == 0;
}

void StepTimes::Learn(size_t begin, size_t end, Nanoseconds took, Nanoseconds unknown) {
  MutexLock lock(&mutex_);
  const Nanoseconds before = OfLocked(begin, end, unknown);
  if (before.count() == 0) return;
  const double ratio = static_cast<double>(took.count()) / static_cast<double>(before.count());
  for (size_t i = begin; i < end; ++i) {
    Nanoseconds& step = steps_[i];
    const bool is_new = step.count() == 0;
    const double scaled = static_cast<double>((is_new ? unknown : step).count()) * ratio;
    // One that took no time has to be able to grow.
    const Nanoseconds now = std::max(Nanoseconds(1), Nanoseconds(static_cast<int64_t>(scaled)));
    known_ += now - step;
    step = now;
    if (is_new) --unknown_;
  }
}

}  // namespace tensord::cuda
