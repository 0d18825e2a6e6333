#include "engine/runtime/devices/work_ahead.h"

#include <algorithm>
#include <functional>

namespace tensord {

bool WorkAhead::AddPiece(absl::Duration piece) {
  if (pieces_.size() == kept_ && (kept_ == 0 || pieces_.back() >= piece)) return false;
  pieces_.insert(std::upper_bound(pieces_.begin(), pieces_.end(), piece, std::greater<>()), piece);
  if (pieces_.size() > kept_) pieces_.pop_back();
  return true;
}

// By time T a worker whose rest is r did at most T - r of the work. One of the workers free by then takes the run; each
// of the others may still have a piece before it.
absl::Duration WorkAhead::LeastWait(absl::Span<const absl::Duration> rests) const {
  absl::Duration work = work_, wait;
  for (size_t i = 0; i < rests.size(); ++i) {
    work += rests[i];
    if (i > 0 && i <= pieces_.size()) work -= pieces_[i - 1];
    wait = std::max(rests[i], work / static_cast<int64_t>(i + 1));
    if (i + 1 < rests.size() && wait <= rests[i + 1]) break;
  }
  return wait;
}

}  // namespace tensord
