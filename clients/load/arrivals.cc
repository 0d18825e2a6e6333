#include "clients/load/arrivals.h"

#include <cmath>

namespace tensord::load {

absl::Duration Arrivals::Next() {
  if (kind_ == ArrivalKind::kFixed) return absl::Seconds(static_cast<double>(count_++) / rate_);
  seconds_ -= std::log1p(-random_.Fraction()) / rate_;
  return absl::Seconds(seconds_);
}

}  // namespace tensord::load
