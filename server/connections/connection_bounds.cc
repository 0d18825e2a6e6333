#include "server/connections/connection_bounds.h"

#include <utility>

namespace tensord::server {
namespace {

int64_t& CountOf(ConnectionExcess excess, ConnectionBounds::Ended* ended) {
  switch (excess) {
    case ConnectionExcess::kHeaders:
      return ended->for_headers;
    case ConnectionExcess::kFrames:
      return ended->for_frames;
    case ConnectionExcess::kSettings:
      return ended->for_settings;
    case ConnectionExcess::kUnread:
      return ended->for_unread;
    case ConnectionExcess::kCancels:
    case ConnectionExcess::kNone:
      break;
  }
  return ended->for_cancels;
}

}  // namespace

void ConnectionBounds::SetTell(Tell tell) {
  MutexLock lock(&mutex_);
  tell_ = std::move(tell);
}

void ConnectionBounds::Exceeded(ConnectionExcess excess, const std::string& peer) {
  MutexLock lock(&mutex_);
  ++CountOf(excess, &ended_);
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
