// How connecting ends: at once where time changes nothing, and with a server where one comes to answer.

#include "clients/cpp/connection/connecting.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/load/dial.h"
#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/access.h"
#include "tensord/client.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"
#include "tests/testlib/tls/server_certificate.h"

namespace tensord {
namespace {

using client::Client;
using client::ConnectOptions;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The answer of a TLS server that cannot serve at the moment: the alert internal_error.
constexpr absl::string_view kAlert("\x15\x03\x03\x00\x02\x02\x50", 7);

// A port in front of a server's, of which the first connection is given a few bytes and closed, and later ones go
// through. Ends with its destructor.
class FirstRefused {
 public:
  FirstRefused(absl::string_view answer, std::string server)
      : answer_(answer), server_(std::move(server)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~FirstRefused() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }

 private:
  void Run() {
    std::vector<std::thread> others;
    for (int client; (client = accept(listener_, nullptr, nullptr)) >= 0;) {
      if (connections_++ > 0) {
        others.emplace_back([this, client] { HandThrough(client); });
        continue;
      }
      char hello[1 << 14];
      EXPECT_GT(recv(client, hello, sizeof(hello), 0), 0);
      EXPECT_EQ(send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer_.size()));
      shutdown(client, SHUT_WR);
      while (recv(client, hello, sizeof(hello), 0) > 0) {
      }
      close(client);
    }
    for (std::thread& other : others) other.join();
  }

  // Until one of both ends hangs up.
  void HandThrough(int client) const {
    const absl::StatusOr<load::Socket> server = load::Dial(server_, absl::Minutes(10));
    ASSERT_TRUE(server.ok()) << server.status();
    pollfd ends[] = {{.fd = client, .events = POLLIN, .revents = 0},
                     {.fd = server->descriptor(), .events = POLLIN, .revents = 0}};
    const auto move = [](int from, int to) {
      char bytes[1 << 16];
      const ssize_t count = recv(from, bytes, sizeof(bytes), 0);
      return count > 0 && send(to, bytes, static_cast<size_t>(count), MSG_NOSIGNAL) == count;
    };
    bool goes_on = true;
    while (goes_on && poll(ends, 2, -1) > 0) {
      if (ends[0].revents != 0) goes_on = move(ends[0].fd, ends[1].fd);
      if (goes_on && ends[1].revents != 0) goes_on = move(ends[1].fd, ends[0].fd);
    }
    close(client);
  }

  const std::string answer_, server_;
  const int listener_;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

class ConnectingTest : public ::testing::Test {
 protected:
  ConnectingTest() {
    folder_.Write("ca.pem", ca_.certificate(), 0644);
    folder_.Write("other.pem", other_ca_.certificate(), 0644);
    folder_.Write("callers", "reader read " + Fingerprint::Of("token").ToHex() + "\n");
  }

  // A server of TLS whose certificate has these names.
  std::unique_ptr<InProcessServer> TlsServer(const std::string& names = "IP:127.0.0.1") {
    WriteServerCertificate(folder_, ca_.Issue({.names = names}));
    return std::make_unique<InProcessServer>(
        CertificateSettings(folder_, {"listen=127.0.0.1:0", "identity.file=" + folder_.PathOf("callers")}));
  }

  // Uses TLS if a file of authorities is named.
  ConnectOptions OptionsOf(const std::string& target, absl::Duration timeout, const std::string& ca = "") const {
    ConnectOptions options = {.target = target, .connect_timeout = timeout};
    if (!ca.empty()) {
      EXPECT_TRUE(client::SetAccess({.ca_file = folder_.PathOf(ca)}, &options).ok());
    }
    return options;
  }
  std::string MessageOf(const ConnectOptions& options) const {
    const absl::Status status = Client::Connect(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    return std::string(status.message());
  }

  const PrivateFolder folder_;
  const CertificateAuthority ca_{"server CA"};
  const CertificateAuthority other_ca_{"another CA"};
};

std::string TcpOf(InProcessServer& server) { return server.daemon().grpc_addresses().at(1); }

// A test that waits for the time to be over never ends.
constexpr absl::Duration kForever = absl::Hours(24);
constexpr absl::Duration kMoment = absl::Milliseconds(300);

TEST_F(ConnectingTest, WhatTimeDoesNotMendIsSaidAtOnce) {
  const auto tls = TlsServer();
  EXPECT_THAT(MessageOf(OptionsOf(TcpOf(*tls), kForever, "other.pem")), HasSubstr("certificate verify failed"));
  const auto named = TlsServer("DNS:elsewhere.example.org");
  EXPECT_THAT(MessageOf(OptionsOf(TcpOf(*named), kForever, "ca.pem")), HasSubstr("is not in peer certificate"));
  InProcessServer plain({"listen=127.0.0.1:0"});
  EXPECT_THAT(MessageOf(OptionsOf(TcpOf(plain), kForever, "ca.pem")), HasSubstr("wrong version number"));
  for (const char* target : {"ipv4:nowhere", "dns:", "[::1"}) {
    EXPECT_THAT(MessageOf(OptionsOf(target, kForever)), HasSubstr(absl::StrCat("no connection: ", target)));
  }
}

TEST_F(ConnectingTest, APathIsAsLongAsASocketsMayBe) {
  const auto connect = [this](size_t bytes) {
    return Client::Connect(OptionsOf("unix:/" + std::string(bytes - 1, 's'), kMoment)).status();
  };
  EXPECT_EQ(connect(107).code(), absl::StatusCode::kUnavailable);
  const absl::Status too_long = connect(108);
  EXPECT_EQ(too_long.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(too_long.message()), HasSubstr("at most 107 bytes, and this one 108"));
}

TEST_F(ConnectingTest, WhatMayPassIsWaitedForAndSaid) {
  const auto tls = TlsServer();
  EXPECT_THAT(MessageOf(OptionsOf(TcpOf(*tls), kMoment)), AllOf(HasSubstr("within 300ms"), HasSubstr("Socket closed")))
      << "plain text to TLS";
  EXPECT_THAT(MessageOf(OptionsOf("unix:" + folder_.PathOf("nothing"), kMoment)),
              AllOf(HasSubstr("within 300ms"), HasSubstr("No such file")));
}

TEST_F(ConnectingTest, AServerThatBreaksOffIsAskedAgain) {
  const auto tls = TlsServer();
  for (const absl::string_view answer : {absl::string_view(), kAlert}) {
    const FirstRefused port(answer, TcpOf(*tls));
    const auto client = Client::Connect(OptionsOf(port.address(), absl::Minutes(10), "ca.pem"));
    EXPECT_TRUE(client.ok()) << client.status();
    EXPECT_GE(port.connections(), 2);
  }
  InProcessServer plain({"listen=127.0.0.1:0"});
  const FirstRefused port("", TcpOf(plain));
  const auto client = Client::Connect(OptionsOf(port.address(), absl::Minutes(10)));
  EXPECT_TRUE(client.ok()) << client.status();
}

TEST(IsPermanentTest, KnowsTheWords) {
  for (const char* error :
       {"unix:/run/s: Permission denied", "Ssl handshake failed: SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED",
        "SSL routines::certificate verify failed", "Peer name a is not in peer certificate",
        "Ssl handshake failed: SSL_ERROR_SSL: WRONG_VERSION_NUMBER", "Trying to connect an http1.x server"}) {
    EXPECT_TRUE(client::IsPermanent(error)) << error;
  }
  for (const char* error :
       {"", "Connection refused", "No such file or directory", "Socket closed", "Connection reset by peer",
        "Ssl handshake failed: Socket closed", "handshake timeout", "Handshaker shutdown",
        "Ssl handshake failed: SSL_ERROR_SSL: tlsv1 alert internal error", "name is not a valid host yet"}) {
    EXPECT_FALSE(client::IsPermanent(error)) << error;
  }
}

}  // namespace
}  // namespace tensord
