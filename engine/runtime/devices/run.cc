#include "engine/runtime/devices/run.h"

#include <optional>
#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "engine/runtime/devices/begun_run.h"

namespace tensord {

absl::Status CheckWanted(const RunRequest& request) {
  if (request.cancel != nullptr && request.cancel->cancelled()) {
    return Refuse(Refusal::kCancelled, "the client cancelled the run");
  }
  if (SteadyNow() >= request.deadline) {
    return Refuse(Refusal::kDeadlineExceeded, "the deadline passed before the run was over; allow more time");
  }
  return absl::OkStatus();
}

absl::StatusOr<RunOutcome> RunProgram(const RunRequest& request, absl::Duration queue_time) {
  BegunRun run(queue_time);
  ASSIGN_OR_RETURN(std::optional<RunOutcome> outcome, run.GoOn(request, {.memory = nullptr}));
  return std::move(outcome).value();  // nothing stops it
}

}  // namespace tensord
