#ifndef TENSORD_SERVER_CONNECTIONS_CONNECTION_PLACES_H_
#define TENSORD_SERVER_CONNECTIONS_CONNECTION_PLACES_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "engine/base/mutex.h"
#include "server/connections/connection_peer.h"

namespace tensord::server {

// Bounds on the open connections of a server: in all, and by address. A new connection without a place takes the place
// of the oldest TCP connection without an admitted call. The owner of a connection closes it without notice; when
// places are short, a descriptor that is no longer the same socket gives its place back. Thread-safe.
class ConnectionPlaces {
 public:
  struct Bounds {
    int64_t most = 0;
    int64_t for_unix = 0;         // places among these for unix sockets alone
    int64_t most_of_address = 0;  // for one address over TCP; 0: no bound
  };
  struct Stats {
    int64_t open = 0;
    int64_t refused = 0;  // since the start
    int64_t unused = 0;   // ended for a new connection, since the start
  };

  explicit ConnectionPlaces(const Bounds& bounds) : bounds_(bounds) {}
  ConnectionPlaces(const ConnectionPlaces&) = delete;
  ConnectionPlaces& operator=(const ConnectionPlaces&) = delete;

  // Changes the bounds of new connections. Open ones stay.
  void SetBounds(const Bounds& bounds);
  Bounds bounds() const;

  // Takes a place for an open socket, until the socket is closed; false if there is none.
  bool Take(int descriptor, const ConnectionPeer& peer);
  // Marks the peer's connection as one with an admitted call, so that it keeps its place. Ignores unknown names.
  void Admitted(absl::string_view peer_name);
  Stats stats();
  // Returns the names of the peers with open connections, as calls name them.
  absl::flat_hash_set<std::string> OpenPeers();
  // Shuts down all open connections; bytes that their peers have not read are lost.
  void ShutDown();

 private:
  // Identity of the socket behind a descriptor.
  struct Socket {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Socket& a, const Socket& b) { return a.device == b.device && a.inode == b.inode; }
  };
  struct Connection {
    Socket socket;
    ConnectionPeer peer;
    int64_t number = 0;  // the higher, the younger
    bool admitted = false;
  };
  using Taken = absl::flat_hash_map<int, Connection>;

  // Returns inode 0, which no open socket has, for a closed descriptor.
  static Socket SocketAt(int descriptor);
  // Shuts the connection down if the descriptor is still that socket.
  static void ShutDownAt(int descriptor, const Socket& socket);
  // Tells whether the peer would have a place without `gone` of the connections in its way.
  bool HasRoomLocked(const ConnectionPeer& peer, int64_t gone = 0) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AddressIsFullLocked(const ConnectionPeer& peer, int64_t gone = 0) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a connection without an admitted call if its end makes room for the peer; else returns false.
  bool EndUnusedLocked(const ConnectionPeer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseLocked(Taken::iterator taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Bounds bounds_ ABSL_GUARDED_BY(mutex_);
  Stats since_start_ ABSL_GUARDED_BY(mutex_);
  int64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  Taken taken_ ABSL_GUARDED_BY(mutex_);  // by descriptor; some may be closed
  absl::flat_hash_map<std::string, int64_t> of_address_ ABSL_GUARDED_BY(mutex_);
  int64_t over_tcp_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, int> by_name_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_CONNECTION_PLACES_H_
