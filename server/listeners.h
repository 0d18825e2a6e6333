#ifndef TENSORD_SERVER_LISTENERS_H_
#define TENSORD_SERVER_LISTENERS_H_

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/config/server_config.pb.h"
#include "server/connection_lines.h"
#include "server/connections/connection_bounds.h"
#include "server/connections/connection_listener.h"
#include "server/connections/listen_address.h"
#include "server/observe/health.h"
#include "server/server_parts.h"
#include "server/shared_memory/memory_broker.h"

namespace tensord::server {

// The listeners of a server for calls and for operators, each with its gRPC server, and the broker of shared memory.
// Confined to the daemon's thread, except for members that say otherwise.
class Listeners {
 public:
  // Makes way for the sockets of calls, and listens nowhere yet. UNAVAILABLE where another server has one. The parts
  // must outlive it.
  static absl::StatusOr<std::unique_ptr<Listeners>> Create(const ServerConfig& config);
  // Without EndCalls nothing may be open.
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  // Opens all that the configuration names: from now on health answers, and calls come to the gate. UNAVAILABLE where
  // an address cannot be had. `parts` and `health` must outlive it.
  absl::Status Open(ServerParts* parts, Health* health);
  // Takes no more connections and ends the calls of both servers, those of peers that do not read as well.
  void EndCalls(bool at_once);
  // Hands out no more shared memory.
  void EndSharing() { broker_.reset(); }

  bool is_open() const { return server_ != nullptr; }
  // Return the addresses as those of Daemon do.
  const std::vector<std::string>& grpc_addresses() const { return grpc_addresses_; }
  const std::string& admin_address() const { return admin_address_; }
  MemoryBroker* broker() const { return broker_.get(); }

 private:
  explicit Listeners(const ServerConfig& config) : config_(config) {}

  absl::Status ListenForCalls(Health* health);
  absl::Status ListenForOperators(const std::optional<ListenAddress>& address, Health* health);
  // Before the first call can come.
  absl::Status ShareMemory(const std::optional<ListenAddress>& address);
  // Lets the server that is built take the connections of the listener's addresses; how they are given to it.
  ConnectionListener::Give AddAcceptors(const ConnectionListener& listener, grpc::ServerBuilder* builder);
  std::shared_ptr<grpc::ServerCredentials> CredentialsFor(const ListenAddress& address);
  ConnectionBounds::Tell TellOfEnded() const;

  const ServerConfig config_;
  std::vector<ListenAddress> addresses_;  // of calls, as configured
  ServerParts* parts_ = nullptr;          // null: not opened yet
  std::unique_ptr<const ConnectionLines> lines_;
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials_;  // the servers do not own them
  std::unique_ptr<grpc::Service> reflection_, admin_reflection_;       // null: not configured
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> admin_server_;
  std::unique_ptr<ConnectionListener> listener_;  // gone before the servers that it gives connections to
  std::unique_ptr<ConnectionListener> admin_listener_;
  std::vector<std::string> grpc_addresses_;
  std::string admin_address_;
  std::unique_ptr<MemoryBroker> broker_;  // null: no memory is shared
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LISTENERS_H_
