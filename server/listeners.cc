#include "server/listeners.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "server/part_settings.h"
#include "server/reflection/reflection_service.h"
#include "server/rpc/wire/transport_tuning.h"
#include "server/server_addresses.h"

namespace tensord::server {
namespace {

// For what the last responses still need on their way out when no call is left.
constexpr auto kFlushTime = std::chrono::milliseconds(200);
// The time after which a client that has not read the end of its call is cut off.
constexpr auto kUnreadTime = std::chrono::milliseconds(500);

// Makes a socket to which only the owner may connect, and with `group` its group too if the process's umask lets a
// group write. So from the start: a later chmod would leave a moment in which others can connect.
class SocketMode {
 public:
  explicit SocketMode(bool group) : before_(umask(0177)) {
    if (group && (before_ & 0020) == 0) umask(0117);
  }
  ~SocketMode() { umask(before_); }
  SocketMode(const SocketMode&) = delete;
  SocketMode& operator=(const SocketMode&) = delete;

 private:
  const mode_t before_;
};

// Returns the size from which gRPC itself refuses a message, before the server sees it. The server's own bound,
// limits.message_bytes, lies below, so that the refusal names that and is counted; the bytes that a client can make the
// server hold beyond it are still bounded.
int64_t MostOfAMessage(int64_t message_bytes) {
  const int64_t beyond = std::min(message_bytes, int64_t{64} << 20);
  return std::min<int64_t>(message_bytes + beyond, std::numeric_limits<int32_t>::max());
}

void AddConnectionLimits(const ServerConfig::Limits& limits, absl::Span<const ListenAddress> addresses,
                         grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.streams_per_connection()));
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                              static_cast<int>(MostMetadataOfAConnection(limits.metadata_bytes())));
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, static_cast<int>(limits.handshake_timeout_ms()));
  // gRPC makes a message as large as it will be before it looks at how large it may be.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  if (const int64_t idle_ms = ConnectionIdleMs(limits, addresses); idle_ms > 0) {
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, static_cast<int>(idle_ms));
  }
}

absl::Status PrepareSocketPaths(absl::Span<const ListenAddress> addresses) {
  for (const ListenAddress& address : addresses) {
    if (address.is_unix()) RETURN_IF_ERROR(PrepareSocketPath(address.socket_path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listeners>> Listeners::Create(const ServerConfig& config) {
  std::unique_ptr<Listeners> listeners(new Listeners(config));
  ASSIGN_OR_RETURN(ServerAddresses addresses, ParseServerAddresses(config));
  listeners->addresses_ = std::move(addresses.calls);
  if (config.listen().empty()) {
    ASSIGN_OR_RETURN(ListenAddress address, DefaultListenAddress());
    listeners->addresses_ = {std::move(address)};
  }
  RETURN_IF_ERROR(PrepareSocketPaths(listeners->addresses_));
  return listeners;
}

Listeners::~Listeners() {
  if (parts_ == nullptr) return;
  parts_->connection_bounds->SetTell(nullptr);
  parts_->admin_connection_bounds->SetTell(nullptr);
}

absl::Status Listeners::Open(ServerParts* parts, Health* health) {
  parts_ = parts;
  lines_ = std::make_unique<ConnectionLines>(parts->log.get(), parts->connections.get());
  Health::EnableService();
  ASSIGN_OR_RETURN(const ServerAddresses addresses, ParseServerAddresses(config_));
  RETURN_IF_ERROR(ShareMemory(addresses.shared_memory));
  RETURN_IF_ERROR(ListenForCalls(health));
  return ListenForOperators(addresses.admin, health);
}

ConnectionBounds::Tell Listeners::TellOfEnded() const {
  return [lines = lines_.get()](ConnectionExcess excess, const std::string& peer, int64_t ended) {
    lines->TellEnded(excess, peer, ended);
  };
}

absl::Status Listeners::ListenForCalls(Health* health) {
  grpc::ServerBuilder builder;
  AddConnectionLimits(config_.limits(), addresses_, &builder);
  builder.SetMaxReceiveMessageSize(static_cast<int>(MostOfAMessage(config_.limits().message_bytes())));
  builder.SetMaxSendMessageSize(-1);
  TuneTransport(&builder);
  builder.RegisterService(parts_->compute_service.get());
  if (config_.reflection()) {
    reflection_ = MakeReflectionService({"tensord.v1.Compute", "grpc.health.v1.Health"});
    builder.RegisterService(reflection_.get());
  }
  {
    const SocketMode mode(/*group=*/true);
    ASSIGN_OR_RETURN(listener_,
                     ConnectionListener::Open(addresses_, parts_->connections.get(), parts_->connection_bounds));
  }
  const auto give = AddAcceptors(*listener_, &builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::UnavailableError("gRPC does not start a server");
  health->Add(server_.get());
  parts_->connection_bounds->SetTell(TellOfEnded());
  listener_->Start(
      give, [this](int64_t refused) { lines_->TellRefused(refused); }, parts_->tls != nullptr);
  for (const ListenAddress& bound : listener_->addresses()) {
    grpc_addresses_.push_back(bound.ToString());
    parts_->log->Event(LogLevel::kInfo, "listening", bound.ToString());
  }
  lines_->TellBound(config_);
  return absl::OkStatus();
}

ConnectionListener::Give Listeners::AddAcceptors(const ConnectionListener& listener, grpc::ServerBuilder* builder) {
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  auto acceptors = std::make_shared<std::vector<std::unique_ptr<Acceptor>>>();
  for (const ListenAddress& address : listener.addresses()) {
    acceptors->push_back(builder->experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, CredentialsFor(address)));
  }
  return [acceptors](size_t address, int listener_descriptor, int connection) {
    Acceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listener_descriptor;
    parameters.fd = connection;
    (*acceptors)[address]->HandleNewConnection(&parameters);
  };
}

absl::Status Listeners::ListenForOperators(const std::optional<ListenAddress>& address, Health* health) {
  if (!address.has_value()) return absl::OkStatus();
  if (address->is_unix()) RETURN_IF_ERROR(PrepareSocketPath(address->socket_path));
  grpc::ServerBuilder builder;
  builder.RegisterService(parts_->admin_service.get());
  builder.RegisterService(parts_->channelz_service.get());
  if (config_.reflection()) {
    admin_reflection_ =
        MakeReflectionService({"tensord.v1.Admin", "grpc.channelz.v1.Channelz", "grpc.health.v1.Health"});
    builder.RegisterService(admin_reflection_.get());
  }
  AddConnectionLimits(config_.limits(), {*address}, &builder);
  {
    const SocketMode mode(/*group=*/false);
    ASSIGN_OR_RETURN(admin_listener_, ConnectionListener::Open({*address}, parts_->admin_connections.get(),
                                                               parts_->admin_connection_bounds));
  }
  const auto give = AddAcceptors(*admin_listener_, &builder);
  admin_server_ = builder.BuildAndStart();
  if (admin_server_ == nullptr) return absl::UnavailableError("gRPC does not start a server for operators");
  health->Add(admin_server_.get());
  parts_->admin_connection_bounds->SetTell(TellOfEnded());
  admin_listener_->Start(
      give, [](int64_t) {}, parts_->tls != nullptr);  // the metric says enough
  admin_address_ = admin_listener_->addresses()[0].ToString();
  parts_->log->Event(LogLevel::kInfo, "listening for operators", admin_address_);
  return absl::OkStatus();
}

absl::Status Listeners::ShareMemory(const std::optional<ListenAddress>& address) {
  if (!address.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(PrepareSocketPath(address->socket_path));
  const ServerConfig::SharedMemory& config = config_.shared_memory();
  MemoryBroker::Options options{.path = address->socket_path, .uids = {}, .max_connections = config.connections()};
  for (const int64_t uid : config.uids()) options.uids.push_back(static_cast<uid_t>(uid));
  options.warn = [log = parts_->log.get()](const std::string& message) {
    log->Event(LogLevel::kError, "sharing memory fails", message);
  };
  ASSIGN_OR_RETURN(broker_, MemoryBroker::Start(std::move(options), {.regions = parts_->regions.get(),
                                                                     .authenticator = parts_->authenticator.get(),
                                                                     .gate = parts_->gate.get(),
                                                                     .refusals = parts_->broker_refusals.get(),
                                                                     .rates = parts_->rates.get()}));
  // Clients have folders of their own.
  parts_->service_parts.tensors.shared_memory_socket = std::filesystem::absolute(broker_->path()).string();
  parts_->log->Event(LogLevel::kInfo, "sharing memory", address->ToString());
  return absl::OkStatus();
}

std::shared_ptr<grpc::ServerCredentials> Listeners::CredentialsFor(const ListenAddress& address) {
  if (address.is_unix() || parts_->tls == nullptr) return grpc::InsecureServerCredentials();
  credentials_.push_back(MakeTlsCredentials(parts_->tls, config_.tls()));
  return credentials_.back();
}

void Listeners::EndCalls(bool at_once) {
  listener_->Stop();
  if (admin_listener_ != nullptr) admin_listener_->Stop();
  // gRPC does not close a connection that it is writing to, and waits until there is none.
  const Alarms::Id unread = parts_->alarms->Set(SteadyNow() + absl::FromChrono(kUnreadTime), [parts = parts_] {
    parts->connections->ShutDown();
    parts->admin_connections->ShutDown();
  });
  const gpr_timespec now = gpr_now(GPR_CLOCK_MONOTONIC);
  const gpr_timespec flushed = gpr_time_add(now, gpr_time_from_millis(kFlushTime.count(), GPR_TIMESPAN));
  server_->Shutdown(at_once ? now : flushed);
  server_->Wait();
  if (admin_server_ != nullptr) {
    admin_server_->Shutdown(flushed);
    admin_server_->Wait();
  }
  parts_->alarms->Drop(unread);
}

}  // namespace tensord::server
