#ifndef TENSORD_SERVER_LIFECYCLE_CONNECTION_PLACES_H_
#define TENSORD_SERVER_LIFECYCLE_CONNECTION_PLACES_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "engine/base/mutex.h"
#include "server/lifecycle/connection_peer.h"

namespace tensord::server {

// How many connections of a server may be open at once, of all and of each address. Where there is no place for one
// that comes, the oldest over TCP goes on which no call was let in yet. Whoever gets a connection once it has a place
// closes it without a word: that it is gone shows in that its descriptor is no more the socket that it was, which is
// looked at when places are short. Thread-safe.
class ConnectionPlaces {
 public:
  struct Bounds {
    int64_t most = 0;
    int64_t for_unix = 0;         // of these, which TCP does not get
    int64_t most_of_address = 0;  // of one address over TCP; 0: no bound
  };
  struct Stats {
    int64_t open = 0;
    int64_t refused = 0;  // since the start
    int64_t unused = 0;   // that were ended for others, likewise
  };

  explicit ConnectionPlaces(const Bounds& bounds) : bounds_(bounds) {}
  ConnectionPlaces(const ConnectionPlaces&) = delete;
  ConnectionPlaces& operator=(const ConnectionPlaces&) = delete;

  // For those that come from now on; who is there stays.
  void SetBounds(const Bounds& bounds);
  Bounds bounds() const;

  // Whether there is a place for the connection, an open socket, which then has it until it is closed.
  bool Take(int descriptor, const ConnectionPeer& peer);
  // A call of the peer of that name was let in: its connection keeps its place. Nothing where none has the name.
  void Admitted(absl::string_view peer_name);
  Stats stats();
  // The peers whose connections are open, by the names by which calls know them.
  absl::flat_hash_set<std::string> OpenPeers();
  // Ends those that are open, whatever their peers have not read: nothing is sent or received on them any more.
  void ShutDown();

 private:
  // What a descriptor stands for.
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

  // Nothing that is open has number 0 of an inode.
  static Socket SocketAt(int descriptor);
  // Ends the connection, if the descriptor still is that.
  static void ShutDownAt(int descriptor, const Socket& socket);
  // When that many that are in its way have gone.
  bool HasRoomLocked(const ConnectionPeer& peer, int64_t gone = 0) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AddressIsFullLocked(const ConnectionPeer& peer, int64_t gone = 0) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends one that may go for the peer's, where that makes room for it; else false.
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

#endif  // TENSORD_SERVER_LIFECYCLE_CONNECTION_PLACES_H_
