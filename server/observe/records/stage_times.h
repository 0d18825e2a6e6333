#ifndef TENSORD_SERVER_OBSERVE_RECORDS_STAGE_TIMES_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_STAGE_TIMES_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tensord::server {

enum class Stage : uint8_t {
#define TENSORD_STAGE(member, name, help) member,
#include "server/observe/records/stages.def"
#undef TENSORD_STAGE
};

inline constexpr absl::string_view kStageNames[] = {
#define TENSORD_STAGE(member, name, help) name,
#include "server/observe/records/stages.def"
#undef TENSORD_STAGE
};

inline constexpr size_t kNumStages = sizeof(kStageNames) / sizeof(kStageNames[0]);

inline absl::string_view Name(Stage stage) { return kStageNames[static_cast<size_t>(stage)]; }

// The times of a call's stages. Ending a stage gives it all the time since the one before ended. So an ended stage
// costs one look at the clock and nothing is counted twice. A stage that comes several times adds up, and keeps its
// first begin. A value; thread-compatible: a call is with one thread at a time.
class StageTimes {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StageTimes(Clock::time_point start = Clock::now()) : start_(start), last_(start) {}

  void End(Stage stage) { EndAt(stage, Clock::now()); }
  // The stage ended then, not before the one before it did.
  void EndAt(Stage stage, Clock::time_point end);
  // Ends `stage`; the last `inner_time` of the time since the stage before ended counts for `inner`, the rest for
  // `stage`.
  void EndWith(Stage stage, Stage inner, absl::Duration inner_time);

  // Returns nothing if the call did not go through it.
  std::optional<absl::Duration> Of(Stage stage) const;
  // Returns the time from the call's begin to the stage's first begin.
  absl::Duration BeginOf(Stage stage) const;
  absl::Duration Total() const { return absl::FromChrono(Clock::now() - start_); }

  // "parse=3,queue=120": microseconds of the stages that the call went through.
  std::string ToText() const;

 private:
  struct Time {
    int64_t begin_ns = -1;  // since the start; -1: not gone through
    int64_t ns = 0;
  };

  Clock::time_point start_;
  Clock::time_point last_;
  std::array<Time, kNumStages> times_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_STAGE_TIMES_H_
