#ifndef TENSORD_SERVER_LIFECYCLE_CONNECTION_PLACES_H_
#define TENSORD_SERVER_LIFECYCLE_CONNECTION_PLACES_H_

#include <sys/types.h>

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "engine/base/mutex.h"

namespace tensord::server {

// How many connections of a server may be open at once. Whoever gets a connection once it has a place closes it without
// a word: that it is gone shows in that its descriptor is no more the socket that it was, which is looked at when
// places are short. Thread-safe.
class ConnectionPlaces {
 public:
  struct Stats {
    int64_t open = 0;
    int64_t refused = 0;  // since the start
  };

  explicit ConnectionPlaces(int64_t most) : most_(most) {}
  ConnectionPlaces(const ConnectionPlaces&) = delete;
  ConnectionPlaces& operator=(const ConnectionPlaces&) = delete;

  // For those that come from now on; who is there stays.
  void SetMost(int64_t most);
  int64_t most() const;

  // Whether there is a place for the connection, an open socket, which then has it until it is closed.
  bool Take(int descriptor);
  Stats stats();
  // Ends those that are open, whatever their peers have not read: nothing is sent or received on them any more.
  void ShutDown();

 private:
  // What a descriptor stands for.
  struct Socket {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Socket& a, const Socket& b) { return a.device == b.device && a.inode == b.inode; }
  };

  // Nothing that is open has number 0 of an inode.
  static Socket SocketAt(int descriptor);
  // Ends the connection, if the descriptor still is that.
  static void ShutDownAt(int descriptor, const Socket& socket);
  void ForgetClosedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  int64_t most_ ABSL_GUARDED_BY(mutex_);
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<int, Socket> taken_ ABSL_GUARDED_BY(mutex_);  // some may be closed
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_CONNECTION_PLACES_H_
