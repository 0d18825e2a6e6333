#include "tests/bench/s4/measured_servers.h"

#include <grpcpp/grpcpp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "engine/base/allocator_tuning.h"
#include "server/daemon.h"
#include "tests/bench/s4/raw_peer.h"

namespace tensord {
namespace {

std::unique_ptr<grpc::Server> ServeRaw(grpc::Service* service, const std::string& address) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(-1);
  // As tensord's own: frames and windows are no part of the comparison.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 20);
  return builder.BuildAndStart();
}

int Serve(const std::string& tensord_address, const std::string& raw_address, size_t tensor_bytes, int end, int ready) {
  TuneAllocator();
  // Before the daemon: it gives every server that is built after it the health and reflection services.
  const std::unique_ptr<grpc::Service> service = MakeRawService(std::make_shared<std::string>(tensor_bytes, 'x'));
  const std::unique_ptr<grpc::Server> raw = ServeRaw(service.get(), raw_address);
  server::ServerConfig config;
  config.add_listen(tensord_address);
  config.mutable_log()->set_level("off");
  config.mutable_shared_memory()->set_listen(tensord_address + "-memory");
  auto daemon = server::Daemon::Start(config);
  if (raw == nullptr || !daemon.ok()) {
    std::fprintf(stderr, "S4: %s\n", daemon.ok() ? "no raw server" : daemon.status().ToString().c_str());
    return 1;
  }
  char byte = '+';
  if (write(ready, &byte, 1) == 1) (void)!read(end, &byte, 1);
  raw->Shutdown();
  (*daemon)->RequestStop();
  (*daemon)->RunUntilStopped();
  return 0;
}

}  // namespace

MeasuredServers::MeasuredServers(const std::string& tensord_address, const std::string& raw_address,
                                 size_t tensor_bytes) {
  int end[2], ready[2];
  if (pipe(end) != 0 || pipe(ready) != 0) return;
  process_ = fork();
  if (process_ == 0) {
    close(end[1]);
    close(ready[0]);
    std::_Exit(Serve(tensord_address, raw_address, tensor_bytes, end[0], ready[1]));
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

bool MeasuredServers::AreReady() {
  char byte = '-';
  return read(ready_, &byte, 1) == 1 && byte == '+';
}

}  // namespace tensord
