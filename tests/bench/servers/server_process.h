#ifndef TENSORD_TESTS_BENCH_SERVERS_SERVER_PROCESS_H_
#define TENSORD_TESTS_BENCH_SERVERS_SERVER_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace tensord {

// Servers in a process of their own, as servers have: in one process clients and servers take turns at polling for each
// other. They serve until the object is gone.
class ServerProcess {
 public:
  // Tells where the servers listen, and returns when they are to stop.
  using Served = std::function<void(const std::vector<std::string>& addresses)>;
  // Runs in the new process: starts servers, calls Served once and stops them. Its value is the exit status.
  using Serve = std::function<int(const Served& served)>;

  // Before this process uses gRPC.
  explicit ServerProcess(const Serve& serve);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Waits for the servers; empty if they cannot serve.
  std::vector<std::string> Await();

 private:
  pid_t process_ = -1;
  int end_ = -1;
  int ready_ = -1;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_SERVERS_SERVER_PROCESS_H_
