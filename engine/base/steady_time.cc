#include "engine/base/steady_time.h"

#include "absl/time/clock.h"

namespace tensord {
namespace {

using Clock = std::chrono::steady_clock;

// Far beyond any deadline, and within the type whatever the clock's origin is.
constexpr absl::Duration kFarthest = absl::Hours(24 * 365 * 100);

struct Anchor {
  absl::Time time = absl::Now();
  Clock::time_point steady = Clock::now();
};

const Anchor& Origin() {
  static const Anchor origin;
  return origin;
}

}  // namespace

absl::Time SteadyNow() {
  const Anchor& origin = Origin();
  return origin.time + absl::FromChrono(Clock::now() - origin.steady);
}

absl::Time SteadyTimeOf(absl::Time time) {
  if (time == absl::InfiniteFuture() || time == absl::InfinitePast()) return time;
  return SteadyNow() + (time - absl::Now());
}

std::chrono::steady_clock::time_point ToSteadyClock(absl::Time steady) {
  const Anchor& origin = Origin();
  const absl::Duration since = steady - origin.time;
  if (since >= kFarthest) return Clock::time_point::max();
  if (since <= -kFarthest) return Clock::time_point::min();
  return origin.steady + absl::ToChronoNanoseconds(since);
}

}  // namespace tensord
