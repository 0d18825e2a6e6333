#ifndef TENSORD_BACKENDS_CUDA_SEGMENT_CLOCK_H_
#define TENSORD_BACKENDS_CUDA_SEGMENT_CLOCK_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/lane.h"
#include "backends/cuda/device/timing_events.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cuda {

// The times of a run's segments, by events on its lane: the lane goes on from one segment to the next as in a run that
// nobody times. The device's clock says how long each took, and the host's when the last one was over; a segment whose
// events fail has taken no time. Confined to its session's thread, which has entered the context.
//
//   SegmentClock clock(context, times);
//   clock.Mark(lane);                     // the first segment begins
//   …  clock.Mark(lane);                  // one is enqueued, and the next begins
//   lane->Finish();  clock.Read();
class SegmentClock {
 public:
  static constexpr size_t kMostEvents = 512;

  // `times` has an entry for each segment, and lives until the last call.
  SegmentClock(std::shared_ptr<Context> context, absl::Span<SegmentTime> times)
      : events_(std::move(context)), times_(times) {}

  // Enqueues an event. Waits for the lane where kMostEvents are on their way.
  absl::Status Mark(Lane* lane);
  // Writes the times of the segments between the events that no call before has read. Nothing is on its way.
  absl::Status Read();

 private:
  absl::Status Record(Lane* lane);

  TimingEvents events_;
  absl::Span<SegmentTime> times_;                // of segments that are still to be read
  std::vector<CuEvent> marks_;                   // that nobody has read; null: it failed
  std::chrono::steady_clock::time_point begun_;  // before the first of them was enqueued
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_SEGMENT_CLOCK_H_
