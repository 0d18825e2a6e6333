#include "server/lifecycle/connection_places.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tensord::server {

ConnectionPlaces::Socket ConnectionPlaces::SocketAt(int descriptor) {
  struct stat info {};
  return fstat(descriptor, &info) == 0 ? Socket{info.st_dev, info.st_ino} : Socket{};
}

void ConnectionPlaces::ShutDownAt(int descriptor, const Socket& socket) {
  // One of our own: whoever has the connection may close it at any moment, and the number is another's then.
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return;
  if (SocketAt(own) == socket) shutdown(own, SHUT_RDWR);
  close(own);
}

void ConnectionPlaces::ShutDown() {
  MutexLock lock(&mutex_);
  for (const auto& [descriptor, socket] : taken_) ShutDownAt(descriptor, socket);
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
