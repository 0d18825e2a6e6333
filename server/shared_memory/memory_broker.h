#ifndef TENSORD_SERVER_SHARED_MEMORY_MEMORY_BROKER_H_
#define TENSORD_SERVER_SHARED_MEMORY_MEMORY_BROKER_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/shared_memory/broker_client.h"

namespace tensord::server {

// Hands out shared memory over a unix socket to processes of this host: those of the server's own user, and of users
// that are named. Owns the socket, the connections, and a thread that answers them one after the other. The regions of
// a connection go when it is closed, by whichever side, also because its process was killed. Thread-safe. Its parts
// must outlive it.
class MemoryBroker {
 public:
  struct Options {
    std::string path;  // of the socket; it is free
    std::vector<uid_t> uids;
    int64_t max_connections = 256;
  };

  // UNAVAILABLE where the socket cannot be made.
  static absl::StatusOr<std::unique_ptr<MemoryBroker>> Start(Options options, const BrokerParts& parts);
  // Closes the connections and removes the socket.
  ~MemoryBroker();
  MemoryBroker(const MemoryBroker&) = delete;
  MemoryBroker& operator=(const MemoryBroker&) = delete;

  const std::string& path() const { return options_.path; }

 private:
  MemoryBroker(Options options, const BrokerParts& parts) : options_(std::move(options)), parts_(parts) {}

  absl::Status Listen();
  void Loop();
  void Accept();
  // OK, or why this process gets nothing.
  absl::Status AdmitUser(int connection, std::string* peer) const;
  // Reads what has come; whether the connection goes on.
  bool Serve(int connection, BrokerClient* client);

  const Options options_;
  const BrokerParts parts_;
  int listener_ = -1;
  int wake_ = -1;  // an event that ends the thread
  std::vector<char> packet_;
  std::map<int, std::unique_ptr<BrokerClient>> clients_;  // by socket; the thread's
  std::thread thread_;                                    // last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SHARED_MEMORY_MEMORY_BROKER_H_
