#ifndef TENSORD_CLIENTS_CLI_OPERATORS_CHANNELZ_H_
#define TENSORD_CLIENTS_CLI_OPERATORS_CHANNELZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/struct.pb.h"
#include "tensord/admin_client.h"

namespace tensord::cli {

// One connection of a client to a server, as grpc.channelz.v1 tells it. Times are the server's, as RFC 3339 has them;
// empty if there was none.
struct ServerConnection {
  std::string local;
  std::string remote;
  bool encrypted = false;
  int64_t calls_started = 0;
  int64_t calls_failed = 0;
  int64_t calls_open = 0;
  int64_t messages_received = 0;
  int64_t messages_sent = 0;
  std::string last_call;
};

// Returns all connections of all servers of the process. One that is closed meanwhile is left out.
absl::StatusOr<std::vector<ServerConnection>> ListConnections(client::AdminClient& admin);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_OPERATORS_CHANNELZ_H_
