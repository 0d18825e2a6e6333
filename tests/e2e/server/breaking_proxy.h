#ifndef TENSORD_TESTS_E2E_SERVER_BREAKING_PROXY_H_
#define TENSORD_TESTS_E2E_SERVER_BREAKING_PROXY_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tensord {

// A unix socket in front of a server's, which hands bytes through both ways, and breaks connections: the first when
// budgets[0] bytes have gone through, the second at budgets[1], and so on; those that come later stay. Ends with its
// destructor.
class BreakingProxy {
 public:
  BreakingProxy(const std::string& path, std::string server_path, std::vector<int64_t> budgets);
  ~BreakingProxy();
  BreakingProxy(const BreakingProxy&) = delete;
  BreakingProxy& operator=(const BreakingProxy&) = delete;

  // From now on nothing that the server says comes through, until Break() ends the connections there are.
  void Mute() { muted_ = era_.load(); }
  void Break() { ++era_; }

  int connections() const { return connections_; }
  int open_connections() const { return open_; }
  // Bytes that went through, both ways and over all connections.
  int64_t bytes() const { return bytes_; }

 private:
  void Run();
  void Serve(int client, int64_t budget);
  // To no end: the bytes are lost. False: one end is closed, or the proxy is to end.
  bool Move(int from, int to, int64_t* left);

  const std::string path_, server_path_;
  const std::vector<int64_t> budgets_;
  int listener_ = -1;
  std::atomic<bool> ends_ = false;
  std::atomic<int> era_ = 0, muted_ = -1;  // an era ends when its connections are broken
  std::atomic<int> connections_ = 0, open_ = 0;
  std::atomic<int64_t> bytes_ = 0;
  std::thread thread_;
  std::vector<std::thread> serving_;  // a connection each
};

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_BREAKING_PROXY_H_
