#ifndef TENSORD_ENGINE_EXEC_BINDING_SEGMENT_PROFILE_H_
#define TENSORD_ENGINE_EXEC_BINDING_SEGMENT_PROFILE_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/exec/binding/bound_program.h"

namespace tensord {

// The times at which the segments of a run ran: an entry for each bound program, in the order in which they ran
// (several if the run decides sizes), with a time for each segment.
struct RunTimes {
  struct Part {
    std::shared_ptr<const BoundProgram> bound;
    std::vector<SegmentTime> times;
    std::shared_ptr<const void> owner;  // of the program that was bound, where that is not the caller's; may be null
  };
  std::vector<Part> parts;
};

// One segment of a run, for people.
struct SegmentProfile {
  // "fused: add multiply tanh (f32[8], f32[8]) -> f32[8]"; of a product also the backend's way, if there are several.
  std::string kernel;
  std::vector<std::string> nodes;  // the client's, that it computes
  absl::Duration start;            // since the run began
  absl::Duration duration;
};

inline constexpr size_t kMaxProfileEntries = 10'000;

// Makes an entry for each segment, in order. For a program with more than kMaxProfileEntries segments the last entry
// stands for all the rest: its duration is the sum of theirs, and it names no nodes. The programs that `times` borrows
// from must still exist.
std::vector<SegmentProfile> MakeProfile(const RunTimes& times, std::chrono::steady_clock::time_point run_start);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_SEGMENT_PROFILE_H_
