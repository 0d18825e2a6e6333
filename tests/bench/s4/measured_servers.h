#ifndef TENSORD_TESTS_BENCH_S4_MEASURED_SERVERS_H_
#define TENSORD_TESTS_BENCH_S4_MEASURED_SERVERS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tests/bench/servers/server_process.h"

namespace tensord {

// tensord and the server that hands slices through, each in a process of its own. They serve unix sockets in a folder
// and TCP, until the object is gone.
class MeasuredServers {
 public:
  struct Addresses {
    std::string tensord, raw;
  };

  // Before this process uses gRPC. The raw server gives tensors of so many bytes.
  MeasuredServers(const std::string& folder, size_t tensor_bytes);

  // Waits for them; false if they cannot serve.
  bool AreReady();
  // Return the addresses of the servers that are ready.
  Addresses by_unix() const { return {.tensord = tensord_addresses_[0], .raw = raw_addresses_[0]}; }
  Addresses by_tcp() const { return {.tensord = tensord_addresses_[1], .raw = raw_addresses_[1]}; }

 private:
  ServerProcess tensord_, raw_;
  std::vector<std::string> tensord_addresses_, raw_addresses_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_S4_MEASURED_SERVERS_H_
