#ifndef TENSORD_SERVER_SHARED_MEMORY_MEMORY_BROKER_H_
#define TENSORD_SERVER_SHARED_MEMORY_MEMORY_BROKER_H_

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "server/connections/socket_file.h"
#include "server/shared_memory/broker_client.h"
#include "server/shared_memory/broker_turns.h"

namespace tensord::server {

// Hands out shared memory over a unix socket to processes of this host: those of the server's own user, and of named
// users. Owns the socket, the connections, a thread that reads from them, and a few threads that answer, tenants in
// turn. Taking a region's pages, or giving them back, takes long, and others need not wait for it: one of the threads
// does only small work. Each connection has one request answered at a time, in the order in which they came. The
// regions of a connection go when either side closes it, also because its process was killed. Thread-safe. Its parts
// must outlive it.
class MemoryBroker {
 public:
  struct Options {
    std::string path;  // of the socket; it is free
    std::vector<uid_t> uids;
    int64_t max_connections = 256;
    // Told that the system does not let the broker wait for its connections, the first time in a row. On the reading
    // thread; may be none.
    std::function<void(const std::string& message)> warn = nullptr;
  };

  // Fails with UNAVAILABLE if the socket cannot be made.
  static absl::StatusOr<std::unique_ptr<MemoryBroker>> Start(Options options, const BrokerParts& parts);
  // Closes the connections and removes the socket.
  ~MemoryBroker();
  MemoryBroker(const MemoryBroker&) = delete;
  MemoryBroker& operator=(const MemoryBroker&) = delete;

  const std::string& path() const { return options_.path; }

  // Sets the users and the number of connections allowed from now on. Existing connections stay.
  void SetAllowed(std::vector<uid_t> uids, int64_t max_connections);
  std::vector<uid_t> uids() const;
  int64_t max_connections() const;

 private:
  MemoryBroker(Options options, const BrokerParts& parts)
      : options_(std::move(options)), parts_(parts), allowed_(options_) {}

  absl::Status Listen();
  // Lets others than the server's user open the socket, or nobody else.
  bool OpenPath(bool to_others) const;
  void Loop();
  // Waits until something comes, or a refused connection has been there long enough. False if the system refuses.
  bool Await(std::vector<pollfd>* waited);
  void Accept();
  // A refusal was sent over the connection; a request that is not read would take it back.
  void Dismiss(int connection);
  void EndDismissed(const std::vector<pollfd>& waited);
  // OK, or why this process gets nothing.
  absl::Status AdmitUser(int connection, std::string* peer) const;
  struct Connection {
    std::unique_ptr<BrokerClient> client;
    bool is_busy = false;  // a request of it is being answered
  };
  // Reads the bytes that have come, refuses the request or gives it to a thread that answers; true if the connection
  // goes on.
  bool Read(int connection, Connection* from);
  using Connections = std::map<int, Connection>;  // by socket

  void HangUp(Connections::iterator client);
  void AnswerLoop(bool small_only);
  void TakeAnswered();
  void Wake();

  const Options options_;
  const BrokerParts parts_;
  int listener_ = -1;
  std::optional<SocketFile> file_;
  int wake_ = -1;  // an event that ends the thread
  std::vector<char> packet_;
  Connections clients_;                                             // the reading thread's
  bool failed_ = false;                                             // likewise: the last wait
  std::map<int, std::chrono::steady_clock::time_point> dismissed_;  // likewise; by socket: until when it may stay
  mutable Mutex mutex_;
  Options allowed_ ABSL_GUARDED_BY(mutex_);  // those of now
  std::vector<BrokerRequest> answered_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  BrokerTurns turns_;
  std::vector<std::thread> answering_;  // the threads last: they use everything above
  std::thread thread_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SHARED_MEMORY_MEMORY_BROKER_H_
