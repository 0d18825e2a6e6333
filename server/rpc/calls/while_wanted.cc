#include "server/rpc/calls/while_wanted.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "engine/base/stop_signal.h"

namespace tensord::server {

absl::Status WhileWanted(const ServedCall& call, absl::string_view for_what, absl::FunctionRef<absl::Status()> step) {
  const absl::Time deadline = call.DeadlineOf(SteadyNow());
  const StopSignal::Check check = [&]() -> absl::Status {
    if (deadline <= SteadyNow()) {
      return Refuse(Refusal::kDeadlineExceeded, absl::StrCat("the deadline passed before ", for_what));
    }
    if (!call.cancel()->cancelled()) return absl::OkStatus();
    return Refuse(Refusal::kCancelled, absl::StrCat("the call was cancelled before ", for_what));
  };
  StopSignal stop(check);
  const StopSignal::Scope scope(&stop);
  RETURN_IF_ERROR(step());
  return stop.status();
}

}  // namespace tensord::server
