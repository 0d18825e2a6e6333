#ifndef TENSORD_BACKENDS_CUDA_WORK_AHEAD_H_
#define TENSORD_BACKENDS_CUDA_WORK_AHEAD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/lane.h"
#include "backends/cuda/device/timing_events.h"
#include "backends/cuda/step_times.h"

namespace tensord::cuda {

// The work that a session has enqueued and the device may not have done yet, by the times of its steps. It stays within
// a bound, since nothing takes work back: a run that nobody wants any more ends when the device has done what is ahead.
// Events between groups of steps tell when they are done, and how long they took; where an event fails, it waits for
// all that is ahead. Confined to its session's thread, which has entered the context.
//
//   ahead.Begin(&times, lane);                            // times outlive the last Read
//   while (!ahead.HasRoomFor(0)) ahead.WaitForSome(lane);
//   …  ahead.Add(0, 1, lane);                             // a part of step 0 is enqueued, and so on
//   ahead.End(lane);  lane->Finish();  ahead.Read();
class WorkAhead {
 public:
  using Nanoseconds = StepTimes::Nanoseconds;

  WorkAhead(std::shared_ptr<Context> context, Nanoseconds most) : events_(std::move(context)), most_(most) {}

  // Begins with the steps of these times, none of which is enqueued. Steps that are far within the bound together are
  // not looked at.
  absl::Status Begin(StepTimes* times, Lane* lane);
  // Notes in how many parts a step is enqueued; one until then.
  void SetParts(size_t step, int64_t parts);
  // Tells whether a part of a step may be enqueued now. One that takes longer than the bound may when nothing is ahead.
  bool HasRoomFor(size_t step) const;
  // Waits for the oldest group.
  absl::Status WaitForSome(Lane* lane);
  // Notes that parts of a step were enqueued, which follow what was before, or all parts of all steps.
  absl::Status Add(size_t step, int64_t parts, Lane* lane);
  absl::Status AddAll(size_t steps, Lane* lane);
  // Notes that all steps are enqueued, so that Read learns the last ones' times too.
  absl::Status End(Lane* lane) { return Mark(lane); }
  // Learns the times of the groups that nobody waited for. Nothing is on its way.
  absl::Status Read();

  // Returns the time that counts for a part of a step that was not measured: two of them may be ahead.
  Nanoseconds unknown() const { return most_ / 2; }
  // Tells whether all steps may be ahead at once, as those of a graph are.
  bool MayHoldAll(const StepTimes& times) const { return times.OfAll(unknown()) <= most_; }

 private:
  // Groups are about so many when the bound is reached.
  static constexpr int kGroups = 4;

  // Work that is enqueued, from the event of the group before to its own.
  struct Group {
    std::vector<StepTimes::Work> work;
    Nanoseconds time{0};
    CuEvent done = nullptr;
  };
  void Open(size_t step, int64_t parts);
  // Ends the open group, if there is work in it. Without an event it goes on.
  absl::Status Mark(Lane* lane);
  // Learns the time of the oldest group, which is done.
  absl::Status TakeOldest();

  TimingEvents events_;
  const Nanoseconds most_;
  StepTimes* times_ = nullptr;  // null: not looked at
  Nanoseconds ahead_{0};        // of all groups
  CuEvent begun_ = nullptr;     // before the oldest group; null: it is not measured
  std::deque<Group> marked_;    // the oldest first
  Group open_;                  // without its event
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_WORK_AHEAD_H_
