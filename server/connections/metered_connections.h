#ifndef TENSORD_SERVER_CONNECTIONS_METERED_CONNECTIONS_H_
#define TENSORD_SERVER_CONNECTIONS_METERED_CONNECTIONS_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/mutex.h"
#include "server/connections/connection_bounds.h"
#include "server/connections/frame_meter.h"
#include "server/connections/send_progress.h"

struct iovec;

namespace tensord::server {

// The connections of this process whose bytes are looked at as gRPC reads them. gRPC bounds neither the headers of a
// call in many frames, nor the calls that a client takes back, nor the calls of a client that does not acknowledge the
// server's settings. It reads and writes by recvmsg and sendmsg, and encrypted connections by SSL_read and SSL_write:
// this file's source defines these functions for the process, and passes on all calls for other descriptors. A
// connection beyond its bounds is ended there, before gRPC gets the bytes: docs/why/0049. Nor does gRPC end a
// connection whose client does not read its answers, and keeps these beyond their calls' deadlines: sendmsg shows how
// much the socket takes. Thread-safe.
class MeteredConnections {
 public:
  static MeteredConnections& OfProcess();
  MeteredConnections(const MeteredConnections&) = delete;
  MeteredConnections& operator=(const MeteredConnections&) = delete;

  // Adds a connection that nobody reads yet; an earlier one with the same number is closed. `peer` is reported if it is
  // ended.
  void Add(int descriptor, bool is_encrypted, std::string peer, std::shared_ptr<ConnectionBounds> bounds);

  // Reads bytes received from the descriptor, for the connection that it belongs to. False: the connection is over.
  bool Received(int descriptor, absl::Span<const iovec> parts, size_t bytes);

  // Notes that bytes are about to be sent over the descriptor.
  void Sends(int descriptor);
  // Notes that the descriptor's socket took `sent` of `wanted` bytes.
  void Sent(int descriptor, size_t wanted, size_t sent);
  // Ends the connections whose clients have not read for longer than their bounds allow.
  void EndUnread(SendProgress::Clock::time_point now);

  // Returns the process at the other end of a connection that was added, over a unix socket; empty of any other.
  std::string UnixPeerOf(int descriptor);

  // An encrypted connection: reads the decrypted bytes.
  class Decrypted {
   public:
    Decrypted(int descriptor, std::shared_ptr<ConnectionBounds> bounds);
    // Reads as above. `sent_bytes`: the bytes sent over the connection before.
    bool Received(absl::string_view bytes, int64_t sent_bytes);

   private:
    const int descriptor_;
    const std::shared_ptr<ConnectionBounds> bounds_;
    FrameMeter meter_;
    int64_t sent_bytes_ = 0;
  };
  // Makes one for the encrypted connection that this thread has received from last; null if there is none.
  std::unique_ptr<Decrypted> NewDecrypted();

 private:
  struct Connection {
    dev_t device = 0;
    ino_t inode = 0;
    bool is_encrypted = false;
    std::string peer;
    std::shared_ptr<ConnectionBounds> bounds;
    FrameMeter meter;
    SendProgress sending;
    bool is_over = false;
  };
  struct Shard {
    Mutex mutex;
    absl::flat_hash_map<int, Connection> connections ABSL_GUARDED_BY(mutex);
  };

  MeteredConnections() = default;
  Shard& ShardOf(int descriptor) { return shards_[static_cast<size_t>(descriptor) % shards_.size()]; }
  // Ends it, once, and tells, if the descriptor still is that connection; whether it is.
  bool End(int descriptor, ConnectionExcess excess);

  std::array<Shard, 16> shards_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_METERED_CONNECTIONS_H_
