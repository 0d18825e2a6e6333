#ifndef TENSORD_TESTS_BENCH_S4_MEASURED_SERVERS_H_
#define TENSORD_TESTS_BENCH_S4_MEASURED_SERVERS_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace tensord {

// tensord and the server that hands slices through, in a process of their own, as servers have: in one process clients
// and servers take turns at polling for each other. They serve unix sockets in a folder and TCP, until the object is
// gone.
class MeasuredServers {
 public:
  struct Addresses {
    std::string tensord, raw;
  };

  // Before this process uses gRPC. The raw server gives tensors of so many bytes.
  MeasuredServers(const std::string& folder, size_t tensor_bytes);
  ~MeasuredServers();
  MeasuredServers(const MeasuredServers&) = delete;
  MeasuredServers& operator=(const MeasuredServers&) = delete;

  // Waits for them; false where they cannot serve.
  bool AreReady();
  // Of what is ready.
  Addresses by_unix() const;
  Addresses by_tcp() const;

 private:
  struct Ports {
    int tensord = 0;
    int raw = 0;
  };
  static int Serve(const std::string& folder, size_t tensor_bytes, int end, int ready);

  const std::string folder_;
  pid_t process_ = -1;
  int end_ = -1;
  int ready_ = -1;
  Ports ports_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_S4_MEASURED_SERVERS_H_
