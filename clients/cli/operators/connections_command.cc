#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/operators/channelz.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/table.h"
#include "google/protobuf/struct.pb.h"

namespace tensord::cli {
namespace {

std::string ConnectionsText(const std::vector<ServerConnection>& connections) {
  Table table({"ADDRESS", "SECURITY", ">CALLS", ">OPEN", ">FAILED", ">IN", ">OUT", "LAST CALL"});
  for (const ServerConnection& connection : connections) {
    table.Add({connection.remote.empty() ? connection.local : connection.remote,
               connection.encrypted ? "encrypted" : "plain", absl::StrCat(connection.calls_started),
               absl::StrCat(connection.calls_open), absl::StrCat(connection.calls_failed),
               absl::StrCat(connection.messages_received), absl::StrCat(connection.messages_sent),
               connection.last_call});
  }
  return table.Text();
}

google::protobuf::Struct JsonOf(const std::vector<ServerConnection>& connections) {
  google::protobuf::Struct result;
  auto* list = (*result.mutable_fields())["connections"].mutable_list_value();
  for (const ServerConnection& connection : connections) {
    auto& fields = *list->add_values()->mutable_struct_value()->mutable_fields();
    fields["local"].set_string_value(connection.local);
    fields["remote"].set_string_value(connection.remote);
    fields["encrypted"].set_bool_value(connection.encrypted);
    fields["calls_started"].set_number_value(static_cast<double>(connection.calls_started));
    fields["calls_failed"].set_number_value(static_cast<double>(connection.calls_failed));
    fields["calls_open"].set_number_value(static_cast<double>(connection.calls_open));
    fields["messages_received"].set_number_value(static_cast<double>(connection.messages_received));
    fields["messages_sent"].set_number_value(static_cast<double>(connection.messages_sent));
    fields["last_call"].set_string_value(connection.last_call);
  }
  return result;
}

int Connections(const Arguments& arguments, Console& console) {
  return WithAdmin("connections", arguments, console, [&console](client::AdminClient& admin) {
    const absl::StatusOr<std::vector<ServerConnection>> connections = ListConnections(admin);
    if (!connections.ok()) return console.Fail(connections.status());
    if (console.is_json()) return console.PrintJson(JsonOf(*connections));
    console.out() << ConnectionsText(*connections);
    return kExitOk;
  });
}

}  // namespace

Command ConnectionsCommand() {
  return {.name = "connections",
          .operands = "",
          .summary = "List who is connected to the server, operators too",
          .details = "IN and OUT are messages.\nWhat else gRPC knows, grpc.channelz.v1 tells on the same listener.\n",
          .flags = AdminFlags(),
          .run = &Connections};
}

}  // namespace tensord::cli
