#include "server/lifecycle/connection_places.h"

#include <sys/stat.h>

namespace tensord::server {

ConnectionPlaces::Socket ConnectionPlaces::SocketAt(int descriptor) {
  struct stat info {};
  return fstat(descriptor, &info) == 0 ? Socket{info.st_dev, info.st_ino} : Socket{};
}

void ConnectionPlaces::ForgetClosedLocked() {
  absl::erase_if(taken_, [](const auto& taken) { return !(SocketAt(taken.first) == taken.second); });
}

void ConnectionPlaces::SetMost(int64_t most) {
  MutexLock lock(&mutex_);
  most_ = most;
}

int64_t ConnectionPlaces::most() const {
  MutexLock lock(&mutex_);
  return most_;
}

bool ConnectionPlaces::Take(int descriptor) {
  const Socket socket = SocketAt(descriptor);
  MutexLock lock(&mutex_);
  taken_.erase(descriptor);  // whatever had the number before is closed
  if (static_cast<int64_t>(taken_.size()) >= most_) ForgetClosedLocked();
  if (static_cast<int64_t>(taken_.size()) >= most_) {
    ++refused_;
    return false;
  }
  taken_.emplace(descriptor, socket);
  return true;
}

ConnectionPlaces::Stats ConnectionPlaces::stats() {
  MutexLock lock(&mutex_);
  ForgetClosedLocked();
  return {.open = static_cast<int64_t>(taken_.size()), .refused = refused_};
}

}  // namespace tensord::server
