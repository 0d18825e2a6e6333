#ifndef TENSORD_TESTS_TESTLIB_PEERS_TCP_CLIENT_H_
#define TENSORD_TESTS_TESTLIB_PEERS_TCP_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace tensord {

// A connection to a port of this host, on which a test sends any bytes. Owns its socket.
class TcpClient {
 public:
  // Connects to the address, host:port; only the port counts.
  explicit TcpClient(absl::string_view address) : TcpClient() { Connect(address); }
  // Connects later.
  TcpClient() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~TcpClient() { close(descriptor_); }
  TcpClient(const TcpClient&) = delete;
  TcpClient& operator=(const TcpClient&) = delete;

  void Connect(absl::string_view address) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) << address;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0) << address;
    const int on = 1;  // what is sent in pieces arrives in pieces
    EXPECT_EQ(setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
  }
  void Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      ASSERT_GT(count, 0);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  // No more will be sent.
  void Finish() { EXPECT_EQ(shutdown(descriptor_, SHUT_WR), 0); }
  // All that comes until the other side closes the connection.
  std::string Receive() {
    std::string bytes;
    char buffer[1 << 16];
    while (true) {
      const ssize_t count = recv(descriptor_, buffer, sizeof(buffer), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return bytes;
      bytes.append(buffer, static_cast<size_t>(count));
    }
  }
  std::string Ask(absl::string_view request) {
    Send(request);
    return Receive();
  }

 private:
  const int descriptor_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_PEERS_TCP_CLIENT_H_
