#include "tests/bench/servers/tensord_process.h"

#include <cstdio>
#include <string>

#include "server/daemon.h"
#include "server/process_tuning.h"
#include "server/rpc/calls/polling_threads.h"

namespace tensord {

ServerProcess::Serve TensordOf(const server::ServerConfig& config) {
  return [config](const ServerProcess::Served& served) {
    server::TuneProcess();
    server::PollingThreads polling;
    const auto daemon = server::Daemon::Start(config, &polling);
    if (!daemon.ok()) {
      std::fprintf(stderr, "tensord: %s\n", std::string(daemon.status().message()).c_str());
      return 1;
    }
    served((*daemon)->grpc_addresses());
    (*daemon)->RequestStop();
    (*daemon)->RunUntilStopped();
    return 0;
  };
}

}  // namespace tensord
