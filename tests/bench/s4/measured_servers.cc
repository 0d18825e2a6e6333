#include "tests/bench/s4/measured_servers.h"

#include <grpcpp/grpcpp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/daemon.h"
#include "server/process_tuning.h"
#include "server/rpc/transport_tuning.h"
#include "tests/bench/s4/raw_peer.h"

namespace tensord {
namespace {

constexpr char kAnyPort[] = "127.0.0.1:0";

MeasuredServers::Addresses AddressesIn(const std::string& folder) {
  return {.tensord = absl::StrCat("unix:", folder, "/tensord"), .raw = absl::StrCat("unix:", folder, "/raw")};
}

std::unique_ptr<grpc::Server> ServeRaw(grpc::Service* service, const MeasuredServers::Addresses& addresses, int* port) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(addresses.raw, grpc::InsecureServerCredentials());
  builder.AddListeningPort(kAnyPort, grpc::InsecureServerCredentials(), port);
  builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(-1);
  server::TuneTransport(&builder);  // as tensord's own: frames and windows are no part of the comparison
  return builder.BuildAndStart();
}

// "127.0.0.1:4711"
int PortOf(const std::string& address) { return std::atoi(address.c_str() + address.rfind(':') + 1); }

}  // namespace

int MeasuredServers::Serve(const std::string& folder, size_t tensor_bytes, int end, int ready) {
  server::TuneProcess();
  const Addresses addresses = AddressesIn(folder);
  Ports ports;
  // Before the daemon: it gives every server that is built after it the health and reflection services.
  const std::unique_ptr<grpc::Service> service = MakeRawService(std::make_shared<std::string>(tensor_bytes, 'x'));
  const std::unique_ptr<grpc::Server> raw = ServeRaw(service.get(), addresses, &ports.raw);
  server::ServerConfig config;
  config.add_listen(addresses.tensord);
  config.add_listen(kAnyPort);
  config.mutable_log()->set_level("off");
  config.mutable_shared_memory()->set_listen(addresses.tensord + "-memory");
  auto daemon = server::Daemon::Start(config);
  if (raw == nullptr || !daemon.ok()) {
    std::fprintf(stderr, "S4: %s\n", daemon.ok() ? "no raw server" : daemon.status().ToString().c_str());
    return 1;
  }
  ports.tensord = PortOf((*daemon)->grpc_addresses().at(1));
  char byte = 0;
  if (write(ready, &ports, sizeof(ports)) == sizeof(ports)) (void)!read(end, &byte, 1);
  raw->Shutdown();
  (*daemon)->RequestStop();
  (*daemon)->RunUntilStopped();
  return 0;
}

MeasuredServers::MeasuredServers(const std::string& folder, size_t tensor_bytes) : folder_(folder) {
  int end[2], ready[2];
  if (pipe(end) != 0 || pipe(ready) != 0) return;
  process_ = fork();
  if (process_ == 0) {
    close(end[1]);
    close(ready[0]);
    std::_Exit(Serve(folder, tensor_bytes, end[0], ready[1]));
  }
  close(end[0]);
  close(ready[1]);
  end_ = end[1];
  ready_ = ready[0];
}

MeasuredServers::~MeasuredServers() {
  close(end_);
  close(ready_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

bool MeasuredServers::AreReady() { return read(ready_, &ports_, sizeof(ports_)) == sizeof(ports_); }

MeasuredServers::Addresses MeasuredServers::by_unix() const { return AddressesIn(folder_); }

MeasuredServers::Addresses MeasuredServers::by_tcp() const {
  return {.tensord = absl::StrCat("127.0.0.1:", ports_.tensord), .raw = absl::StrCat("127.0.0.1:", ports_.raw)};
}

}  // namespace tensord
