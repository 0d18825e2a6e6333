#include "server/connections/connection_places.h"

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
  // A descriptor of our own: the connection's owner may close it at any moment, and the number is another's then.
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return;
  if (SocketAt(own) == socket) shutdown(own, SHUT_RDWR);
  close(own);
}

void ConnectionPlaces::ShutDown() {
  MutexLock lock(&mutex_);
  for (const auto& [descriptor, connection] : taken_) ShutDownAt(descriptor, connection.socket);
}

void ConnectionPlaces::EraseLocked(Taken::iterator taken) {
  const ConnectionPeer& peer = taken->second.peer;
  if (!peer.address.empty()) {
    --over_tcp_;
    const auto of_address = of_address_.find(peer.address);
    if (--of_address->second == 0) of_address_.erase(of_address);
  }
  const auto named = by_name_.find(peer.name);
  if (named != by_name_.end() && named->second == taken->first) by_name_.erase(named);
  taken_.erase(taken);
}

void ConnectionPlaces::ForgetClosedLocked() {
  for (auto next = taken_.begin(); next != taken_.end();) {
    const auto taken = next++;
    if (!(SocketAt(taken->first) == taken->second.socket)) EraseLocked(taken);
  }
}

void ConnectionPlaces::SetBounds(const Bounds& bounds) {
  MutexLock lock(&mutex_);
  bounds_ = bounds;
}

ConnectionPlaces::Bounds ConnectionPlaces::bounds() const {
  MutexLock lock(&mutex_);
  return bounds_;
}

bool ConnectionPlaces::AddressIsFullLocked(const ConnectionPeer& peer, int64_t gone) const {
  if (peer.address.empty() || bounds_.most_of_address == 0) return false;
  const auto of_address = of_address_.find(peer.address);
  return of_address != of_address_.end() && of_address->second - gone >= bounds_.most_of_address;
}

bool ConnectionPlaces::HasRoomLocked(const ConnectionPeer& peer, int64_t gone) const {
  if (static_cast<int64_t>(taken_.size()) - gone >= bounds_.most) return false;
  if (peer.address.empty()) return true;
  return over_tcp_ - gone < bounds_.most - bounds_.for_unix && !AddressIsFullLocked(peer, gone);
}

bool ConnectionPlaces::EndUnusedLocked(const ConnectionPeer& peer) {
  if (!HasRoomLocked(peer, 1)) return false;
  const bool same_address = AddressIsFullLocked(peer);
  auto oldest = taken_.end();
  for (auto taken = taken_.begin(); taken != taken_.end(); ++taken) {
    const Connection& connection = taken->second;
    if (connection.admitted) continue;
    if (same_address && connection.peer.address != peer.address) continue;
    if (oldest == taken_.end() || connection.number < oldest->second.number) oldest = taken;
  }
  if (oldest == taken_.end()) return false;
  ShutDownAt(oldest->first, oldest->second.socket);
  EraseLocked(oldest);
  ++since_start_.unused;
  return true;
}

bool ConnectionPlaces::Take(int descriptor, const ConnectionPeer& peer) {
  const Socket socket = SocketAt(descriptor);
  MutexLock lock(&mutex_);
  // An earlier connection with the same number is closed.
  if (const auto before = taken_.find(descriptor); before != taken_.end()) EraseLocked(before);
  if (!HasRoomLocked(peer)) ForgetClosedLocked();
  if (!HasRoomLocked(peer) && !EndUnusedLocked(peer)) {
    ++since_start_.refused;
    return false;
  }
  const bool is_unix = peer.address.empty();  // whose mode says who comes, and whose calls do not say by which
  taken_.emplace(descriptor, Connection{socket, peer, ++last_number_, /*admitted=*/is_unix});
  if (is_unix) return true;
  ++over_tcp_;
  ++of_address_[peer.address];
  by_name_[peer.name] = descriptor;
  return true;
}

void ConnectionPlaces::Admitted(absl::string_view peer_name) {
  MutexLock lock(&mutex_);
  const auto named = by_name_.find(peer_name);
  if (named != by_name_.end()) taken_.find(named->second)->second.admitted = true;
}

ConnectionPlaces::Stats ConnectionPlaces::stats() {
  MutexLock lock(&mutex_);
  ForgetClosedLocked();
  Stats stats = since_start_;
  stats.open = static_cast<int64_t>(taken_.size());
  return stats;
}

absl::flat_hash_set<std::string> ConnectionPlaces::OpenPeers() {
  MutexLock lock(&mutex_);
  ForgetClosedLocked();
  absl::flat_hash_set<std::string> peers;
  for (const auto& [descriptor, connection] : taken_) peers.insert(connection.peer.name);
  return peers;
}

}  // namespace tensord::server
