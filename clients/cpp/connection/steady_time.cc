#include "clients/cpp/connection/steady_time.h"

#include <algorithm>
#include <cstdint>

#include "absl/time/clock.h"

namespace tensord::client {
namespace {

using Clock = std::chrono::steady_clock;

// Far beyond any deadline, and within every type.
constexpr absl::Duration kFarthest = absl::Hours(24 * 365 * 100);

struct Anchor {
  absl::Time time = absl::Now();
  Clock::time_point steady = Clock::now();
};

const Anchor& Origin() {
  static const Anchor origin;
  return origin;
}

bool IsInfinite(absl::Time time) { return time == absl::InfiniteFuture() || time == absl::InfinitePast(); }

}  // namespace

absl::Time SteadyNow() {
  const Anchor& origin = Origin();
  return origin.time + absl::FromChrono(Clock::now() - origin.steady);
}

absl::Time SteadyTimeOf(absl::Time time) { return IsInfinite(time) ? time : SteadyNow() + (time - absl::Now()); }

absl::Time TimeOfDay(absl::Time steady) { return IsInfinite(steady) ? steady : absl::Now() + (steady - SteadyNow()); }

Clock::time_point ToSteadyClock(absl::Time steady) {
  const absl::Duration left = steady - SteadyNow();
  if (left >= kFarthest) return Clock::time_point::max();
  return Clock::now() + absl::ToChronoNanoseconds(std::max(left, -kFarthest));
}

gpr_timespec ToGrpcDeadline(absl::Time steady) {
  const absl::Duration left = steady - SteadyNow();
  if (left >= kFarthest) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(std::max(left, -kFarthest));
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanoseconds, GPR_TIMESPAN));
}

}  // namespace tensord::client
