// Clients' credentials, by the C++ client and by tensordctl's flags: to servers with TLS and tokens, on the listener of
// operators too.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/access.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/peers/tensordctl_call.h"
#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"
#include "tests/testlib/tls/server_certificate.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

class ClientAccessTest : public ::testing::Test {
 protected:
  ClientAccessTest() {
    WriteServerCertificate(folder_, ca_.Issue());
    folder_.Write("ca.pem", ca_.certificate(), 0644);
    folder_.Write("clients.pem", client_ca_.certificate(), 0644);
    folder_.Write("other.pem", client_ca_.certificate(), 0644);
    const IssuedCertificate client = client_ca_.Issue({.common_name = "ops", .names = "DNS:ops.example.org"});
    folder_.Write("client.pem", client.certificate, 0644);
    folder_.Write("client.key", client.key);
    folder_.Write("token", "token-a\n");
    folder_.Write("wrong-token", "token-x");
    folder_.Write("empty", "");
    folder_.Write("callers", "team-a execute,read,admin " + Fingerprint::Of("token-a").ToHex() +
                                 "\nops read,admin dns:ops.example.org\nreader read " +
                                 Fingerprint::Of("token-r").ToHex() + "\n");
    for (const char* name : {"TENSORD_TLS", "TENSORD_CA_FILE", "TENSORD_CERTIFICATE_FILE", "TENSORD_KEY_FILE",
                             "TENSORD_TOKEN", "TENSORD_TOKEN_FILE"}) {
      unsetenv(name);
    }
  }

  std::string File(const std::string& name) const { return folder_.PathOf(name); }

  std::vector<std::string> Settings() const {
    return CertificateSettings(folder_, {"listen=127.0.0.1:0", "admin.listen=127.0.0.1:0",
                                         "tls.client_ca=" + File("clients.pem"), "identity.file=" + File("callers")});
  }

  // "info" over TCP, with these flags.
  static cli::Outcome Info(InProcessServer& server, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"info", "--target=" + server.daemon().grpc_addresses().at(1), "--deadline=20s"});
    return cli::CallTensordctl(flags);
  }
  // "sessions" on the listener of operators, whose port is TCP.
  static cli::Outcome Sessions(InProcessServer& server, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"sessions", "--admin=" + server.daemon().admin_address(), "--deadline=20s"});
    return cli::CallTensordctl(flags);
  }

  const PrivateFolder folder_;
  const CertificateAuthority ca_{"server CA"};
  const CertificateAuthority client_ca_{"client CA"};
};

TEST_F(ClientAccessTest, FlagsLetTensordctlIn) {
  InProcessServer server(Settings());
  const std::string ca = "--ca=" + File("ca.pem");
  const cli::Outcome by_token = Info(server, {ca, "--token-file=" + File("token")});
  EXPECT_EQ(by_token.status, cli::kExitOk) << by_token.err;
  EXPECT_THAT(by_token.out, HasSubstr("device cpu:0"));
  const cli::Outcome by_certificate =
      Info(server, {ca, "--certificate=" + File("client.pem"), "--key=" + File("client.key")});
  EXPECT_EQ(by_certificate.status, cli::kExitOk) << by_certificate.err;
  const cli::Outcome nobody = Info(server, {ca});
  EXPECT_EQ(nobody.status, cli::kExitFailed);
  EXPECT_THAT(nobody.err, HasSubstr("UNAUTHENTICATED"));
  const cli::Outcome stranger = Info(server, {ca, "--token-file=" + File("wrong-token")});
  EXPECT_THAT(stranger.err, HasSubstr("UNAUTHENTICATED"));
}

TEST_F(ClientAccessTest, FlagsThatDoNotFitAreRefusedBeforeACall) {
  const auto error_of = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"info", "--target=192.0.2.1:7070"});
    const cli::Outcome outcome = cli::CallTensordctl(flags);
    EXPECT_EQ(outcome.status, cli::kExitUsage) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(error_of({"--ca=/nowhere/ca.pem"}), HasSubstr("cannot read /nowhere/ca.pem"));
  EXPECT_THAT(error_of({"--certificate=" + File("client.pem")}), HasSubstr("go together"));
  EXPECT_THAT(error_of({"--key=" + File("client.key")}), HasSubstr("go together"));
  EXPECT_THAT(error_of({"--token-file=" + File("empty"), "--tls"}), HasSubstr("cannot read"));
  EXPECT_THAT(error_of({"--token-file=" + File("token")}), HasSubstr("plain text"));
}

TEST_F(ClientAccessTest, AnotherAuthorityIsNotTrusted) {
  InProcessServer server(Settings());
  const auto fails = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"info", "--target=" + server.daemon().grpc_addresses().at(1), "--deadline=500ms"});
    return cli::CallTensordctl(flags).status == cli::kExitFailed;
  };
  EXPECT_TRUE(fails({"--ca=" + File("other.pem")}));
  EXPECT_TRUE(fails({"--tls"})) << "the authorities of the system";
  EXPECT_TRUE(fails({})) << "plain text";
}

TEST_F(ClientAccessTest, TheEnvironmentSaysTheSame) {
  InProcessServer server(Settings());
  setenv("TENSORD_CA_FILE", File("ca.pem").c_str(), 1);
  setenv("TENSORD_TOKEN", "token-a", 1);
  EXPECT_EQ(Info(server, {}).status, cli::kExitOk);
  EXPECT_THAT(Info(server, {"--token-file=" + File("wrong-token")}).err, HasSubstr("UNAUTHENTICATED"))
      << "what is spelled out wins";
  unsetenv("TENSORD_TOKEN");
  setenv("TENSORD_TOKEN_FILE", File("token").c_str(), 1);
  EXPECT_EQ(Info(server, {}).status, cli::kExitOk);
  unsetenv("TENSORD_TOKEN_FILE");
  unsetenv("TENSORD_CA_FILE");
}

TEST_F(ClientAccessTest, OperatorsComeOverTcpWithTlsAndTheRole) {
  InProcessServer server(Settings());
  const std::string ca = "--ca=" + File("ca.pem");
  const cli::Outcome by_token = Sessions(server, {ca, "--token-file=" + File("token")});
  EXPECT_EQ(by_token.status, cli::kExitOk) << by_token.err;
  const cli::Outcome by_certificate =
      Sessions(server, {ca, "--certificate=" + File("client.pem"), "--key=" + File("client.key")});
  EXPECT_EQ(by_certificate.status, cli::kExitOk) << by_certificate.err;
  EXPECT_THAT(Sessions(server, {ca}).err, HasSubstr("UNAUTHENTICATED"));
  folder_.Write("token-r", "token-r");
  EXPECT_THAT(Sessions(server, {ca, "--token-file=" + File("token-r")}).err, HasSubstr("PERMISSION_DENIED"));
  const cli::Outcome plain = cli::CallTensordctl(
      {"sessions", "--admin=" + server.daemon().admin_address(), "--deadline=500ms", "--token-file=" + File("token")});
  EXPECT_EQ(plain.status, cli::kExitFailed) << "plain text to a port that speaks TLS";
#if !defined(__SANITIZE_THREAD__)  // with which protobuf's own maps, as in JSON, have another layout than the library's
  const cli::Outcome connections = cli::CallTensordctl(
      {"connections", "--admin=" + server.daemon().admin_address(), ca, "--token-file=" + File("token")});
  EXPECT_EQ(connections.status, cli::kExitOk) << connections.err;
  EXPECT_THAT(connections.out, HasSubstr("127.0.0.1:"));
#endif
}

TEST_F(ClientAccessTest, SetAccessOfTheClient) {
  InProcessServer server(Settings());
  const auto info = [&](const client::Access& access) {
    client::ConnectOptions options{.target = server.daemon().grpc_addresses().at(1)};
    const absl::Status set = client::SetAccess(access, &options);
    if (!set.ok()) return set;
    const auto client = client::Client::Connect(std::move(options));
    if (!client.ok()) return client.status();
    return (*client)->GetServerInfo(false).status();
  };
  EXPECT_TRUE(info({.ca_file = File("ca.pem"), .token = "token-a"}).ok());
  EXPECT_TRUE(info({.ca_file = File("ca.pem"), .token = " token-a\n"}).ok()) << "as files have it";
  EXPECT_TRUE(info({.ca_file = File("ca.pem"), .token_file = File("token")}).ok());
  EXPECT_TRUE(
      info({.ca_file = File("ca.pem"), .certificate_file = File("client.pem"), .key_file = File("client.key")}).ok());
  EXPECT_EQ(info({.ca_file = File("ca.pem")}).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(info({.ca_file = File("ca.pem"), .token = "token-a", .token_file = File("token")}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(info({.ca_file = File("empty")}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ClientAccessTest, ATokenDoesNotLeaveThisMachineInPlainText) {
  const auto refuses = [](const std::string& target) {
    client::ConnectOptions options{.target = target};
    const absl::Status set = client::SetAccess({.token = "t"}, &options);
    EXPECT_EQ(set.ok(), options.metadata.size() == 1);
    return !set.ok();
  };
  for (const char* local : {"", "unix:/run/tensord.sock", "localhost:7070", "127.0.0.1:7070", "[::1]:7070",
                            "dns:///localhost:7070", "ipv4:///127.0.0.1:7070"}) {
    EXPECT_FALSE(refuses(local)) << local;
  }
  for (const char* remote : {"192.0.2.1:7070", "example.org:7070", "dns:///example.org:7070", "localhost.example.org:1",
                             "127.0.0.1.example.org:7070", "dns:///127.example.org:7070"}) {
    EXPECT_TRUE(refuses(remote)) << remote;
  }
  client::ConnectOptions options{.target = "example.org:7070"};
  EXPECT_TRUE(client::SetAccess({.tls = true, .token = "t"}, &options).ok());
}

}  // namespace
}  // namespace tensord
