#ifndef TENSORD_CLIENTS_CPP_CONNECTION_STEADY_TIME_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_STEADY_TIME_H_

#include <grpc/support/time.h>

#include <chrono>

#include "absl/time/time.h"

namespace tensord::client {

// Returns the time of day as it would be if nobody had set the system's clock since this was first asked. Deadlines and
// waits count by it. Never goes back. Not for display to people.
absl::Time SteadyNow();

// Converts a deadline that a caller gave as a time of day: SteadyNow will then be as far away as the system's clock is
// from `time` now. The infinite ones stay.
absl::Time SteadyTimeOf(absl::Time time);
// Converts back, for a function that takes a time of day and looks at it at once.
absl::Time TimeOfDay(absl::Time steady);

// The same moment, to wait for; one that is infinite, or too far away for the type, is its last.
std::chrono::steady_clock::time_point ToSteadyClock(absl::Time steady);
// The same as a deadline of calls and connections.
gpr_timespec ToGrpcDeadline(absl::Time steady);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_STEADY_TIME_H_
