#ifndef TENSORD_ENGINE_BASE_STEADY_TIME_H_
#define TENSORD_ENGINE_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace tensord {

// Returns the time of day as it would be if nobody had set the system's clock since this was first asked. Deadlines,
// waits, rates and stalls count by it. Never goes back. Not for display to people.
absl::Time SteadyNow();

// Converts a deadline that came as a time of day: SteadyNow will then be as far away as the system's clock is from
// `time` now. The infinite ones stay.
absl::Time SteadyTimeOf(absl::Time time);

// The same moment, to wait for; one that is infinite, or too far away for the type, is its last.
std::chrono::steady_clock::time_point ToSteadyClock(absl::Time steady);

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_STEADY_TIME_H_
