#ifndef TENSORD_TESTS_BENCH_SERVERS_TENSORD_PROCESS_H_
#define TENSORD_TESTS_BENCH_SERVERS_TENSORD_PROCESS_H_

#include "server/config/server_config.pb.h"
#include "tests/bench/servers/server_process.h"

namespace tensord {

// Returns the function with which a ServerProcess becomes the daemon, tuned as the binary is. Its addresses are those
// of the calls, in the order of the configuration.
ServerProcess::Serve TensordOf(const server::ServerConfig& config);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_SERVERS_TENSORD_PROCESS_H_
