#ifndef TENSORD_CLIENTS_CPP_CONNECTION_REPEATED_CALL_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_REPEATED_CALL_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/connection/cancellation.h"
#include "clients/cpp/connection/retry_backoff.h"
#include "clients/cpp/connection/steady_time.h"

namespace tensord::client {

// Tells whether a server may have been at work for the call when it broke off: it may have died of it. gRPC, and
// ToAbslStatus of a proxy, tell only by the message that no server was given it.
bool MayHaveRun(const absl::Status& unavailable);

// Makes a call that may run twice. Makes it again if no server took it or its answer was lost: behind a balancer
// another server has it. Four times at most, twice if it may have run, after pauses, and not past the deadline.
template <typename Result, typename Call>
absl::StatusOr<Result> RepeatedCall(absl::Time deadline, const Call& call) {
  constexpr int kMostCalls = 4, kMostBroken = 2;
  int broken = 0;
  RetryBackoff backoff(kMostCalls);
  while (true) {
    absl::StatusOr<Result> result = call();
    if (!absl::IsUnavailable(result.status())) return result;
    if (MayHaveRun(result.status()) && ++broken == kMostBroken) return result;
    const std::optional<absl::Duration> pause = backoff.Next(SteadyNow(), deadline);
    if (!pause.has_value()) return result;
    if (!PauseFor(*pause)) return absl::CancelledError("cancelled between two attempts");
  }
}

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_REPEATED_CALL_H_
