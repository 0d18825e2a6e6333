#include "clients/cli/operators/channelz.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/ext/channelz_service_plugin.h"

namespace tensord::cli {
namespace {

using google::protobuf::Message;
using google::protobuf::Struct;
using google::protobuf::Value;

constexpr int kPageSize = 500;

// gRPC's library of channelz has the messages, but no header of them: without a name of its own that is used, linkers
// leave it out.
[[gnu::used]] void (*const kLibrary)() = &grpc::channelz::experimental::InitChannelzService;

std::unique_ptr<Message> NewMessage(absl::string_view name) {
  const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
      absl::StrCat("grpc.channelz.v1.", name));
  if (descriptor == nullptr) return nullptr;
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
}

// A call with its messages as JSON.
absl::StatusOr<Struct> Call(client::AdminClient& admin, absl::string_view method, const std::string& request_json) {
  const std::unique_ptr<Message> request = NewMessage(absl::StrCat(method, "Request"));
  const std::unique_ptr<Message> response = NewMessage(absl::StrCat(method, "Response"));
  if (request == nullptr || response == nullptr) {
    return absl::UnimplementedError("this tensordctl was built without gRPC's channelz");
  }
  if (!google::protobuf::util::JsonStringToMessage(request_json, request.get()).ok()) {
    return absl::InternalError("a request of channelz cannot be made");
  }
  const absl::StatusOr<std::string> bytes =
      admin.CallRaw(absl::StrCat("/grpc.channelz.v1.Channelz/", method), request->SerializeAsString());
  if (!bytes.ok()) return bytes.status();
  std::string json;
  Struct result;
  if (!response->ParseFromString(*bytes) || !google::protobuf::util::MessageToJsonString(*response, &json).ok() ||
      !google::protobuf::util::JsonStringToMessage(json, &result).ok()) {
    return absl::DataLossError("the server's account of its connections cannot be read");
  }
  return result;
}

// Returns a field; an absent one is empty.
const Value& Field(const Value& value, const std::string& name) {
  const auto& fields = value.struct_value().fields();
  const auto found = fields.find(name);
  return found == fields.end() ? Value::default_instance() : found->second;
}

// 64-bit numbers are text in JSON.
int64_t Number(const Value& value) {
  int64_t number = 0;
  return absl::SimpleAtoi(value.string_value(), &number) ? number : 0;
}

std::string AddressText(const Value& address) {
  const Value& tcp = Field(address, "tcpipAddress");
  if (tcp.has_struct_value()) {
    std::string bytes;
    absl::Base64Unescape(Field(tcp, "ipAddress").string_value(), &bytes);
    std::string text;
    if (bytes.size() == 4) {
      for (const char byte : bytes) {
        absl::StrAppend(&text, text.empty() ? "" : ".", static_cast<int>(static_cast<unsigned char>(byte)));
      }
    } else {
      for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
        const int group = (static_cast<unsigned char>(bytes[i]) << 8) | static_cast<unsigned char>(bytes[i + 1]);
        absl::StrAppend(&text, text.empty() ? "[" : ":", absl::Hex(group));
      }
      text += "]";
    }
    return absl::StrCat(text, ":", static_cast<int>(Field(tcp, "port").number_value()));
  }
  const Value& local = Field(address, "udsAddress");
  if (local.has_struct_value()) return absl::StrCat("unix:", Field(local, "filename").string_value());
  return Field(Field(address, "otherAddress"), "name").string_value();
}

ServerConnection ConnectionOf(const Value& socket) {
  const Value& data = Field(socket, "data");
  ServerConnection connection;
  connection.local = AddressText(Field(socket, "local"));
  connection.remote = AddressText(Field(socket, "remote"));
  connection.encrypted = Field(socket, "security").has_struct_value();
  connection.calls_started = Number(Field(data, "streamsStarted"));
  connection.calls_failed = Number(Field(data, "streamsFailed"));
  connection.calls_open = connection.calls_started - Number(Field(data, "streamsSucceeded")) - connection.calls_failed;
  connection.messages_received = Number(Field(data, "messagesReceived"));
  connection.messages_sent = Number(Field(data, "messagesSent"));
  connection.last_call = Field(data, "lastRemoteStreamCreatedTimestamp").string_value();
  return connection;
}

// Appends the connections of one server, page by page.
absl::Status AppendConnections(client::AdminClient& admin, int64_t server, std::vector<ServerConnection>* connections) {
  int64_t from = 0;
  while (true) {
    const absl::StatusOr<Struct> page = Call(admin, "GetServerSockets",
                                             absl::StrCat(R"({"serverId":")", server, R"(","startSocketId":")", from,
                                                          R"(","maxResults":")", kPageSize, R"("})"));
    if (!page.ok()) return page.status();
    Value sockets;
    *sockets.mutable_struct_value() = *page;
    const auto& refs = Field(sockets, "socketRef").list_value().values();
    for (const Value& ref : refs) {
      const int64_t id = Number(Field(ref, "socketId"));
      from = id + 1;
      const absl::StatusOr<Struct> socket = Call(admin, "GetSocket", absl::StrCat(R"({"socketId":")", id, R"("})"));
      if (absl::IsNotFound(socket.status())) continue;  // closed meanwhile
      if (!socket.ok()) return socket.status();
      Value whole;
      *whole.mutable_struct_value() = *socket;
      connections->push_back(ConnectionOf(Field(whole, "socket")));
    }
    if (refs.empty() || Field(sockets, "end").bool_value()) return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<std::vector<ServerConnection>> ListConnections(client::AdminClient& admin) {
  const absl::StatusOr<Struct> servers = Call(admin, "GetServers", "{}");
  if (!servers.ok()) return servers.status();
  Value whole;
  *whole.mutable_struct_value() = *servers;
  std::vector<ServerConnection> connections;
  for (const Value& server : Field(whole, "server").list_value().values()) {
    const absl::Status appended =
        AppendConnections(admin, Number(Field(Field(server, "ref"), "serverId")), &connections);
    if (!appended.ok() && !absl::IsNotFound(appended)) return appended;
  }
  return connections;
}

}  // namespace tensord::cli
