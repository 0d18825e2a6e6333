#include "tests/bench/s4/measured_servers.h"

#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "server/process_tuning.h"
#include "server/rpc/wire/transport_tuning.h"
#include "tests/bench/s4/raw_peer.h"
#include "tests/bench/servers/tensord_process.h"

namespace tensord {
namespace {

constexpr char kAnyPort[] = "127.0.0.1:0";

server::ServerConfig ConfigIn(const std::string& folder) {
  server::ServerConfig config;
  config.add_listen(absl::StrCat("unix:", folder, "/tensord"));
  config.add_listen(kAnyPort);
  config.mutable_log()->set_level("off");
  config.mutable_shared_memory()->set_listen(absl::StrCat(config.listen(0), "-memory"));
  return config;
}

ServerProcess::Serve RawIn(const std::string& folder, size_t tensor_bytes) {
  return [=](const ServerProcess::Served& served) {
    server::TuneProcess();
    const std::unique_ptr<grpc::Service> service = MakeRawService(std::make_shared<std::string>(tensor_bytes, 'x'));
    const std::string socket = absl::StrCat("unix:", folder, "/raw");
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(socket, grpc::InsecureServerCredentials());
    builder.AddListeningPort(kAnyPort, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service.get());
    builder.SetMaxReceiveMessageSize(-1);
    server::TuneTransport(&builder);  // as tensord's own: frames and windows are no part of the comparison
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server == nullptr) return 1;
    served({socket, absl::StrCat("127.0.0.1:", port)});
    server->Shutdown();
    return 0;
  };
}

}  // namespace

MeasuredServers::MeasuredServers(const std::string& folder, size_t tensor_bytes)
    : tensord_(TensordOf(ConfigIn(folder))), raw_(RawIn(folder, tensor_bytes)) {}

bool MeasuredServers::AreReady() {
  tensord_addresses_ = tensord_.Await();
  raw_addresses_ = raw_.Await();
  return tensord_addresses_.size() == 2 && raw_addresses_.size() == 2;
}

}  // namespace tensord
