#ifndef TENSORD_CLIENTS_CPP_CONNECTION_STEADY_TIME_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_STEADY_TIME_H_

#include <grpc/support/time.h>

#include <chrono>

#include "absl/time/time.h"

namespace tensord::client {

// The time of day as it would be if nobody had set the system's clock since this was first asked: what deadlines and
// waits are counted by. Never goes back. Not for what people read.
absl::Time SteadyNow();

// When SteadyNow will be as far away as the system's clock is from `time` now: a deadline that a caller gave as a time
// of day. The infinite ones stay.
absl::Time SteadyTimeOf(absl::Time time);
// The other way, for what takes a time of day and looks at it at once.
absl::Time TimeOfDay(absl::Time steady);

// The same moment, to wait for; one that is infinite, or too far away for the type, is its last.
std::chrono::steady_clock::time_point ToSteadyClock(absl::Time steady);
// The same as a deadline of calls and connections.
gpr_timespec ToGrpcDeadline(absl::Time steady);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_STEADY_TIME_H_
