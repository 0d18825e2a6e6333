#include "server/lifecycle/connection_bounds.h"

#include <utility>

namespace tensord::server {

void ConnectionBounds::SetTell(Tell tell) {
  MutexLock lock(&mutex_);
  tell_ = std::move(tell);
}

void ConnectionBounds::Exceeded(FrameExcess excess, const std::string& peer) {
  MutexLock lock(&mutex_);
  ++(excess == FrameExcess::kHeaders ? ended_.for_headers : ended_.for_cancels);
  ++untold_;
  const auto now = std::chrono::steady_clock::now();
  if (told_ != std::chrono::steady_clock::time_point::min() && now - told_ < kTellEvery) return;
  if (tell_ != nullptr) tell_(excess, peer, untold_);
  untold_ = 0;
  told_ = now;
}

ConnectionBounds::Ended ConnectionBounds::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

}  // namespace tensord::server
