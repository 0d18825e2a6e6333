#include "server/rpc/calls/rpc_request.h"

#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/steady_time.h"

namespace tensord::server {

absl::Status RpcRequest::CheckWanted() const {
  if (deadline() <= SteadyNow()) {
    return Refuse(Refusal::kDeadlineExceeded, "the deadline passed before the program ran");
  }
  if (cancel()->cancelled()) return Refuse(Refusal::kCancelled, "the call was cancelled before the program ran");
  return absl::OkStatus();
}

void RpcRequest::ContinueInTurn(std::function<void()> continuation) {
  parts().admission.turns->Submit(caller().tenant,
                                  [this, continuation = std::move(continuation)] { Continue(continuation); });
}

void RpcRequest::FailInternally(absl::string_view what) {
  parts().observers.log->Event(LogLevel::kError, "internal", what);
  Fail(Refuse(Refusal::kInternal, what));
}

}  // namespace tensord::server
