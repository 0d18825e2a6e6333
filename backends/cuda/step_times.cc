#include "backends/cuda/step_times.h"

#include <algorithm>

namespace tensord::cuda {

void StepTimes::SetVaries(size_t step) {
  MutexLock lock(&mutex_);
  steps_[step].varies = true;
  varying_.push_back(step);
}

void StepTimes::SetParts(size_t step, int64_t parts) {
  MutexLock lock(&mutex_);
  Step& now = steps_[step];
  if (now.parts == parts) return;
  known_ -= now.whole();
  // One that took no time has to be able to grow.
  if (now.part.count() > 0) now.part = std::max(Nanoseconds(1), now.whole() / parts);
  now.parts = parts;
  known_ += now.whole();
}

int64_t StepTimes::PartsOf(size_t step) const {
  MutexLock lock(&mutex_);
  return steps_[step].parts;
}

StepTimes::Nanoseconds StepTimes::Of(size_t step, Nanoseconds unknown) const {
  MutexLock lock(&mutex_);
  return steps_[step].Of(unknown);
}

StepTimes::Nanoseconds StepTimes::OfPart(size_t step, Nanoseconds unknown) const {
  MutexLock lock(&mutex_);
  return steps_[step].OfPart(unknown);
}

StepTimes::Nanoseconds StepTimes::OfAll(Nanoseconds unknown) const {
  MutexLock lock(&mutex_);
  Nanoseconds all = known_ + unknown * static_cast<int64_t>(unknown_);
  for (const size_t i : varying_) {
    const Step& step = steps_[i];
    all += step.Of(unknown) - (step.part.count() == 0 ? unknown : step.whole());
  }
  return all;
}

bool StepTimes::AreKnown() const {
  MutexLock lock(&mutex_);
  return unknown_ == 0;
}

void StepTimes::Learn(absl::Span<const Work> work, Nanoseconds took, Nanoseconds unknown) {
  MutexLock lock(&mutex_);
  const auto part_of = [&](const Step& step) { return step.part.count() == 0 ? unknown : step.part; };
  Nanoseconds before{0};
  for (const Work& some : work) before += part_of(steps_[some.step]) * some.parts;
  if (before.count() == 0) return;
  const double ratio = static_cast<double>(took.count()) / static_cast<double>(before.count());
  for (const Work& some : work) {
    Step& step = steps_[some.step];
    const double scaled = static_cast<double>(part_of(step).count()) * ratio;
    if (step.part.count() == 0) --unknown_;
    known_ -= step.whole();
    // One that took no time has to be able to grow.
    step.part = std::max(Nanoseconds(1), Nanoseconds(static_cast<int64_t>(scaled)));
    known_ += step.whole();
  }
}

}  // namespace tensord::cuda
