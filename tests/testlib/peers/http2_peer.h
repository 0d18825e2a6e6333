#ifndef TENSORD_TESTS_TESTLIB_PEERS_HTTP2_PEER_H_
#define TENSORD_TESTS_TESTLIB_PEERS_HTTP2_PEER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace tensord {

// A client of HTTP/2 that sends any frames in any order, and reads nothing unless it is asked to. Begins with the
// preface and empty settings. Owns its socket.
class Http2Peer {
 public:
  enum Type : uint8_t {
    kData = 0,
    kHeaders = 1,
    kPriority = 2,
    kReset = 3,
    kSettings = 4,
    kPing = 6,
    kGoAway = 7,
    kWindow = 8,
    kContinuation = 9,
    kUnknown = 77
  };
  static constexpr uint8_t kEndStream = 1;
  static constexpr uint8_t kEndHeaders = 4;

  // "unix:/path" or "127.0.0.1:port". With TLS it trusts anybody.
  explicit Http2Peer(absl::string_view target, bool with_tls = false) {
    if (absl::ConsumePrefix(&target, "unix:")) {
      descriptor_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un to{};
      to.sun_family = AF_UNIX;
      std::memcpy(to.sun_path, target.data(), target.size());
      EXPECT_EQ(connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0) << std::string(target);
    } else {
      descriptor_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const int small = 4096;  // what the peer does not read fills it soon
      EXPECT_EQ(setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
      int port = 0;
      EXPECT_TRUE(absl::SimpleAtoi(target.substr(target.rfind(':') + 1), &port));
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(static_cast<uint16_t>(port));
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      EXPECT_EQ(connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0) << std::string(target);
    }
    if (with_tls) Encrypt();
    EXPECT_TRUE(Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, "")));
  }
  ~Http2Peer() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    close(descriptor_);
  }
  Http2Peer(const Http2Peer&) = delete;
  Http2Peer& operator=(const Http2Peer&) = delete;

  static std::string Frame(Type type, uint8_t flags, uint32_t stream, absl::string_view payload) {
    return Number(static_cast<uint32_t>(payload.size()), 3) + static_cast<char>(type) + static_cast<char>(flags) +
           Number(stream, 4) + std::string(payload);
  }
  // A header that no table gets, its length below 127 each.
  static std::string Header(absl::string_view name, absl::string_view value) {
    return std::string(1, '\0') + static_cast<char>(name.size()) + std::string(name) + static_cast<char>(value.size()) +
           std::string(value);
  }
  // Returns the headers of a gRPC call of the method "/package.Service/Method".
  static std::string CallHeaders(absl::string_view method) {
    return Header(":method", "POST") + Header(":scheme", "http") + Header(":path", method) + Header(":authority", "a") +
           Header("content-type", "application/grpc") + Header("te", "trailers");
  }
  // All of a call with that message, and further headers.
  static std::string Call(uint32_t stream, absl::string_view method, absl::string_view message = "",
                          absl::string_view headers = "") {
    return Frame(kHeaders, kEndHeaders, stream, CallHeaders(method) + std::string(headers)) +
           Frame(kData, kEndStream, stream, Message(message));
  }
  // Returns a message of gRPC, in data frames.
  static std::string Message(absl::string_view message) {
    return std::string(1, '\0') + Number(static_cast<uint32_t>(message.size()), 4) + std::string(message);
  }
  static std::string Number(uint32_t value, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
    return text;
  }

  // Returns false if the other side has ended the connection.
  bool Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ssl_ != nullptr ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                                            : send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && ssl_ == nullptr && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  // Sends as much as the other side takes without a pause of that many milliseconds; false if it has ended the
  // connection.
  bool SendWhileTaken(absl::string_view bytes, int pause_ms) {
    while (!bytes.empty()) {
      pollfd writable{.fd = descriptor_, .events = POLLOUT, .revents = 0};
      if (poll(&writable, 1, pause_ms) == 0) return true;
      const ssize_t count = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  // Tells whether the other side ends the connection by then, even with unread bytes.
  bool EndsWithin(int ms) const {
    pollfd ended{.fd = descriptor_, .events = POLLRDHUP, .revents = 0};
    return poll(&ended, 1, ms) > 0;
  }
  // Some of what has come, after it came; empty at the end of the connection.
  std::string Receive() {
    std::string bytes(1 << 16, '\0');
    ssize_t count = 0;
    while ((count = recv(descriptor_, bytes.data(), bytes.size(), 0)) < 0 && errno == EINTR) {
    }
    bytes.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return bytes;
  }
  // Reads all that comes until the other side ends the connection.
  void ReceiveToTheEnd() {
    while (!Receive().empty()) {
    }
  }

 private:
  void Encrypt() {
    signal(SIGPIPE, SIG_IGN);  // OpenSSL writes as it likes
    context_ = SSL_CTX_new(TLS_client_method());
    ssl_ = SSL_new(context_);
    const unsigned char kH2[] = {2, 'h', '2'};
    EXPECT_EQ(SSL_set_alpn_protos(ssl_, kH2, sizeof(kH2)), 0);
    EXPECT_EQ(SSL_set_fd(ssl_, descriptor_), 1);
    EXPECT_EQ(SSL_connect(ssl_), 1);
  }

  int descriptor_ = -1;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_PEERS_HTTP2_PEER_H_
