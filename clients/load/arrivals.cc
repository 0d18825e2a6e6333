#include "clients/load/arrivals.h"

#include <algorithm>
#include <cmath>

namespace tensord::load {
namespace {

// A year is behind the end of every run, and clocks of 64 bits count nanoseconds that far.
constexpr double kMostSeconds = 365.0 * 86400;

}  // namespace

absl::Duration Arrivals::Next() {
  if (kind_ == ArrivalKind::kFixed) {
    seconds_ = static_cast<double>(count_++) / rate_;
  } else {
    seconds_ -= std::log1p(-random_.Fraction()) / rate_;
  }
  return absl::Seconds(std::min(seconds_, kMostSeconds));
}

}  // namespace tensord::load
