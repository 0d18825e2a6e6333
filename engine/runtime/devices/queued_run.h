#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_QUEUED_RUN_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_QUEUED_RUN_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/runtime/devices/begun_run.h"
#include "engine/runtime/devices/run.h"

namespace tensord {

// Runs of a higher class go first. Priorities beyond the classes count as the nearest.
inline constexpr int kNumPriorityClasses = 5;
inline constexpr int kMostPriority = 2;
inline constexpr absl::string_view kPriorityClassNames[kNumPriorityClasses] = {"lowest", "low", "ordinary", "high",
                                                                               "highest"};
inline int PriorityClassOf(int32_t priority) {
  return std::clamp(priority, -kMostPriority, kMostPriority) + kMostPriority;
}

// A run that waits for a worker, or was taken by one; it may wait again in its middle (runs_aside.h). Only the queue
// changes the fields that it writes.
struct QueuedRun {
  RunRequest request;
  absl::Time since;
  absl::Duration expected;       // its time on the device; zero: not known
  std::optional<int64_t> bytes;  // of device memory that it takes beside what is resident; absent: not known before
                                 // its sizes are bound
  CancelToken::Listener listener = 0;
  int64_t promised = 0;               // of these, since it was taken
  bool is_bound_first = false;        // it was taken before its bytes are known, and memory is bounded
  absl::Status refusal;               // why it leaves the queue or ends, where it is neither cancelled nor late
  std::unique_ptr<BegunRun> begun;    // null: it has not, or cannot stop
  int64_t stops = 0;                  // in its middle, so far
  absl::Duration used;                // of workers, so far
  int64_t wanted = 0;                 // bytes, as `bytes` counts them, without which it does not go on; 0: none
  CompiledProgram::LeaveSized leave;  // withdraws it from the stage that it waits for; null: it waits for none

  bool is_known() const { return expected > absl::ZeroDuration(); }
  int64_t argument_bytes() const {
    int64_t bytes = 0;
    for (const RunTensor& argument : request.arguments) bytes += argument.type.num_bytes();
    return bytes;
  }

  // Written by the queue.
  uint64_t id = 0;         // in the order of arrival
  int level = 0;           // the class in which it waits now, which rises with its age
  absl::Time due;          // in whose order runs of one tenant go
  absl::Time rises_at;     // to the next class
  absl::Duration charged;  // to its tenant when it was taken
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_QUEUED_RUN_H_
