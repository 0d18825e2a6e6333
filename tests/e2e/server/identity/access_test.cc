// The callers allowed on each listener: tokens, certificates, roles.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"
#include "tests/testlib/tls/server_certificate.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

std::string LineOf(const std::string& tenant, const std::string& roles, const std::string& token) {
  return tenant + " " + roles + " " + Fingerprint::Of(token).ToHex() + "\n";
}

std::string TcpTarget(InProcessServer& server) { return server.daemon().grpc_addresses().at(1); }

std::shared_ptr<grpc::Channel> DialTo(const std::string& target,
                                      const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

std::shared_ptr<grpc::Channel> DialTcp(InProcessServer& server) {
  return DialTo(TcpTarget(server), grpc::InsecureChannelCredentials());
}

// "OK", or the reason of the refusal; the code where it has none.
std::string Outcome(const grpc::Status& status) {
  if (status.ok()) return "OK";
  const std::string reason = DetailOf(status).reason();
  return reason.empty() ? "code " + std::to_string(status.error_code()) : reason;
}

class Call {
 public:
  explicit Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& authorization = "")
      : stub_(v1::Compute::NewStub(channel)) {
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
  }
  std::string Info() {
    v1::ServerInfo info;
    return Outcome(stub_->GetServerInfo(&context_, v1::GetServerInfoRequest(), &info));
  }
  std::string Execute() {
    const std::vector<v1::Tensor> ones(2, FloatTensor(std::vector<float>(16, 1), {16}));
    v1::ExecuteResponse response;
    return Outcome(stub_->Execute(&context_, RequestOf(SmallAdd(), ones), &response));
  }
  std::string ExecuteStream() {
    const auto stream = stub_->ExecuteStream(&context_);
    stream->WritesDone();
    v1::ExecuteResponse response;
    while (stream->Read(&response)) {
    }
    return Outcome(stream->Finish());
  }
  v1::CompileResponse Compile(const v1::CompileRequest& request) {
    v1::CompileResponse response;
    EXPECT_EQ(Outcome(stub_->Compile(&context_, request, &response)), "OK");
    return response;
  }
  std::string ExplainByDigits(const std::string& digits) {
    v1::ExplainRequest request;
    request.set_fingerprint_prefix(digits);
    v1::ExplainResponse response;
    return Outcome(stub_->Explain(&context_, request, &response));
  }
  std::string PutTensor() {
    v1::PutTensorResponse response;
    const auto stream = stub_->PutTensor(&context_, &response);
    stream->WritesDone();
    return Outcome(stream->Finish());
  }
  std::string GetTensor() {
    const auto stream = stub_->GetTensor(&context_, v1::GetTensorRequest());
    v1::GetTensorResponse response;
    while (stream->Read(&response)) {
    }
    return Outcome(stream->Finish());
  }

 private:
  std::unique_ptr<v1::Compute::Stub> stub_;
  grpc::ClientContext context_;
};

class TokenTest : public ::testing::Test {
 protected:
  std::vector<std::string> Settings() const {
    return {"listen=127.0.0.1:0", "identity.file=" + folder_.PathOf("callers")};
  }

  const PrivateFolder folder_;
  const std::string callers_ =
      folder_.Write("callers", LineOf("team-a", "execute,read", "token-a") + LineOf("reader", "read", "token-r"));
};

TEST_F(TokenTest, OnlyCallersWithATokenComeInOverTcp) {
  InProcessServer server(Settings());
  const auto channel = DialTcp(server);
  EXPECT_EQ(Call(channel, "Bearer token-a").Execute(), "OK");
  EXPECT_EQ(Call(channel).Execute(), "UNAUTHENTICATED");
  EXPECT_EQ(Call(channel).Info(), "UNAUTHENTICATED");
  EXPECT_EQ(Call(channel).ExecuteStream(), "UNAUTHENTICATED");
  EXPECT_EQ(Call(channel).PutTensor(), "UNAUTHENTICATED");
  EXPECT_EQ(Call(channel).GetTensor(), "UNAUTHENTICATED");
  EXPECT_EQ(Call(channel, "Bearer token-b").Execute(), "UNAUTHENTICATED");
  EXPECT_EQ(Call(channel, "Basic token-a").Execute(), "UNAUTHENTICATED");
  EXPECT_EQ(server.Metric("tensord_auth_refusals_total", "no_credentials"), 5);
  EXPECT_EQ(server.Metric("tensord_auth_refusals_total", "unknown_token"), 1);
  EXPECT_EQ(server.Metric("tensord_auth_refusals_total", "malformed"), 1);
  // Probes show nothing.
  EXPECT_EQ(CallRaw(channel, "grpc.health.v1.Health/Check", "").bytes, "\x08\x01");
}

// Else whoever is refused fills the log, whatever the audit leaves out.
TEST_F(TokenTest, WhoIsRefusedHasNoLineAmongTheRequests) {
  std::vector<std::string> settings = Settings();
  settings.push_back("log.level=info");
  ::testing::internal::CaptureStderr();
  {
    InProcessServer server(settings);
    const auto channel = DialTcp(server);
    EXPECT_EQ(Call(channel, "Bearer token-a").Info(), "OK");
    for (int i = 0; i < 100; ++i) EXPECT_EQ(Call(channel).Info(), "UNAUTHENTICATED");
    EXPECT_EQ(Call(channel, "Bearer token-r").ExecuteStream(), "PERMISSION_DENIED");
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("access_refused"));
  EXPECT_THAT(log, HasSubstr("\"event\":\"request\",\"method\":\"GetServerInfo\""));
  const std::vector<std::string> by_line = absl::StrSplit(log, '\n');
  EXPECT_EQ(std::count_if(by_line.begin(), by_line.end(),
                          [](const std::string& line) { return absl::StrContains(line, "\"event\":\"request\""); }),
            1);
}

TEST_F(TokenTest, RolesDecideWhichMethods) {
  InProcessServer server(Settings());
  const auto channel = DialTcp(server);
  EXPECT_EQ(Call(channel, "Bearer token-r").Info(), "OK");
  EXPECT_EQ(Call(channel, "Bearer token-r").Execute(), "PERMISSION_DENIED");
  EXPECT_EQ(Call(channel, "Bearer token-r").ExecuteStream(), "PERMISSION_DENIED");
  EXPECT_EQ(server.Metric("tensord_auth_refusals_total", "role"), 2);
}

// Else four digits, and all of them are asked for in seconds, lead to every program and the constants in it.
TEST_F(TokenTest, OnlyOperatorsNameProgramsByTheirFirstDigits) {
  folder_.Write("callers", LineOf("team-a", "execute,read", "token-a") + LineOf("ops", "execute,admin", "token-o"));
  InProcessServer server(Settings());
  const auto channel = DialTcp(server);
  v1::CompileRequest compile;
  *compile.mutable_graph() = SmallAdd();
  const std::string fingerprint = Call(channel, "Bearer token-a").Compile(compile).program().fingerprint();
  EXPECT_EQ(Call(channel, "Bearer token-a").ExplainByDigits(fingerprint.substr(0, 12)), "PERMISSION_DENIED");
  EXPECT_EQ(Call(channel, "Bearer token-a").ExplainByDigits("abcd"), "PERMISSION_DENIED");
  EXPECT_EQ(server.Metric("tensord_auth_refusals_total", "role"), 2);
  EXPECT_EQ(Call(channel, "Bearer token-o").ExplainByDigits(fingerprint.substr(0, 12)), "OK");
}

TEST_F(TokenTest, UnixSocketsAreTrustedUnlessToldOtherwise) {
  const mode_t before = umask(0022);
  {
    InProcessServer server(Settings());
    umask(before);
    struct stat info {};
    ASSERT_EQ(stat(server.socket_path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600u);
    EXPECT_EQ(Call(server.Dial()).Execute(), "OK");
    EXPECT_EQ(Call(server.Dial(), "Bearer token-b").Execute(), "UNAUTHENTICATED");
    EXPECT_EQ(Call(server.Dial(), "Bearer token-r").Execute(), "PERMISSION_DENIED");
  }
  std::vector<std::string> settings = Settings();
  settings.push_back("identity.trust_unix_sockets=false");
  InProcessServer server(settings);
  EXPECT_EQ(Call(server.Dial()).Execute(), "UNAUTHENTICATED");
  EXPECT_EQ(Call(server.Dial(), "Bearer token-a").Execute(), "OK");
}

TEST_F(TokenTest, AFileThatIsWrongEndsTheStart) {
  folder_.Write("callers", "team-a execute oops\n");
  server::ServerConfig config;
  config.add_listen("127.0.0.1:0");
  config.mutable_identity()->set_file(callers_);
  const absl::Status refused = server::Daemon::Start(config).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("callers: line 1"));
}

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    WriteServerCertificate(folder_, ca_.Issue());
    folder_.Write("clients.pem", client_ca_.certificate(), 0644);
    folder_.Write("callers", "team-s execute,read spiffe://example.org/s\nteam-d execute,read dns:d.example.org\n" +
                                 LineOf("team-t", "execute", "token-t"));
  }

  std::vector<std::string> Settings(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> settings = CertificateSettings(folder_, {"listen=127.0.0.1:0"});
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
  }

  std::vector<std::string> MutualSettings(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> settings = Settings(more);
    settings.push_back("tls.client_ca=" + folder_.PathOf("clients.pem"));
    settings.push_back("identity.file=" + folder_.PathOf("callers"));
    return settings;
  }

  static std::shared_ptr<grpc::Channel> Dial(InProcessServer& server, const CertificateAuthority& ca,
                                             const IssuedCertificate& client = {}) {
    return DialTo(TcpTarget(server), grpc::SslCredentials({ca.certificate(), client.key, client.certificate}));
  }

  const PrivateFolder folder_;
  const CertificateAuthority ca_{"server CA"};
  const CertificateAuthority client_ca_{"client CA"};
  const std::string unavailable_ = "code " + std::to_string(grpc::StatusCode::UNAVAILABLE);
};

TEST_F(TlsTest, ConnectionsAreEncryptedAndTheServerIsVerified) {
  InProcessServer server(Settings());
  EXPECT_EQ(Call(Dial(server, ca_)).Execute(), "OK");
  EXPECT_EQ(Call(Dial(server, client_ca_)).Execute(), unavailable_) << "a CA that the client does not trust";
  EXPECT_EQ(Call(DialTcp(server)).Execute(), unavailable_) << "plain text";
  EXPECT_EQ(Call(server.Dial()).Execute(), "OK") << "unix sockets stay as they are";
  const double expiry = server.Metric("tensord_tls_certificate_expiry_timestamp_seconds", "server");
  EXPECT_NEAR(expiry, absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()) + 3600, 600);
}

TEST_F(TlsTest, CertificatesOfClientsAreTenants) {
  InProcessServer server(MutualSettings());
  const auto issue = [&](const std::string& names, const std::string& common_name = "x") {
    return client_ca_.Issue({.common_name = common_name, .names = names});
  };
  EXPECT_EQ(Call(Dial(server, ca_, issue("URI:spiffe://example.org/s"))).Execute(), "OK");
  EXPECT_EQ(Call(Dial(server, ca_, issue("DNS:d.example.org"))).Execute(), "OK");
  EXPECT_EQ(Call(Dial(server, ca_, issue("DNS:e.example.org", "d.example.org"))).Execute(), "UNAUTHENTICATED");
  EXPECT_EQ(server.Metric("tensord_auth_refusals_total", "unknown_certificate"), 1);
  EXPECT_EQ(Call(Dial(server, ca_)).Execute(), "UNAUTHENTICATED") << "no certificate";
  EXPECT_EQ(Call(Dial(server, ca_), "Bearer token-t").Execute(), "OK") << "no certificate but a token";
  EXPECT_EQ(Call(Dial(server, ca_), "Bearer token-t").Info(), "PERMISSION_DENIED");
}

TEST_F(TlsTest, WithoutATableOfCallersTokensAreNotLookedAt) {
  InProcessServer server(Settings({"tls.client_ca=" + folder_.PathOf("clients.pem")}));
  EXPECT_EQ(Call(Dial(server, ca_, client_ca_.Issue()), "Bearer whatever").Execute(), "OK");
  EXPECT_EQ(Call(Dial(server, ca_), "Bearer whatever").Execute(), "UNAUTHENTICATED");
  EXPECT_EQ(server.Metric("tensord_auth_refusals_total", "no_credentials"), 1);
}

TEST_F(TlsTest, CertificatesThatDoNotVerifyDoNotConnect) {
  InProcessServer server(MutualSettings({"tls.require_client_certificate=true"}));
  const CertificateSubject subject{.names = "URI:spiffe://example.org/s"};
  CertificateSubject expired = subject;
  expired.begin = -absl::Hours(2);
  expired.end = -absl::Hours(1);
  EXPECT_EQ(Call(Dial(server, ca_, client_ca_.Issue(subject))).Execute(), "OK");
  EXPECT_EQ(Call(Dial(server, ca_, client_ca_.Issue(expired))).Execute(), unavailable_) << "expired";
  EXPECT_EQ(Call(Dial(server, ca_, ca_.Issue(subject))).Execute(), unavailable_) << "of another CA";
  EXPECT_EQ(Call(Dial(server, ca_)).Execute(), unavailable_) << "none";
}

TEST_F(TlsTest, WrongFilesEndTheStart) {
  const IssuedCertificate expired = ca_.Issue({.begin = -absl::Hours(2), .end = -absl::Hours(1)});
  WriteServerCertificate(folder_, expired);
  server::ServerConfig config;
  config.add_listen("127.0.0.1:0");
  config.mutable_tls()->set_certificate(folder_.PathOf("server.pem"));
  config.mutable_tls()->set_key(folder_.PathOf("server.key"));
  EXPECT_THAT(std::string(server::Daemon::Start(config).status().message()), HasSubstr("expired at"));
  config.mutable_tls()->clear_key();
  EXPECT_THAT(std::string(server::Daemon::Start(config).status().message()), HasSubstr("go together"));
}

TEST(ListenTest, BeyondThisMachineNeedsTls) {
  server::ServerConfig config;
  config.add_listen("0.0.0.0:0");
  EXPECT_THAT(std::string(server::Daemon::Check(config).message()), HasSubstr("not encrypted"));
  const PrivateFolder folder;
  const IssuedCertificate issued = CertificateAuthority().Issue();
  config.mutable_tls()->set_certificate(folder.Write("c", issued.certificate, 0644));
  config.mutable_tls()->set_key(folder.Write("k", issued.key));
  EXPECT_TRUE(server::Daemon::Check(config).ok()) << server::Daemon::Check(config);
}

grpc::Status AskWithMetadata(v1::Compute::Stub& stub, size_t bytes) {
  grpc::ClientContext context;
  context.AddMetadata("filler", std::string(bytes, 'x'));
  v1::ServerInfo info;
  return stub.GetServerInfo(&context, v1::GetServerInfoRequest(), &info);
}

TEST(MetadataTest, IsBounded) {
  InProcessServer server({"limits.metadata_bytes=4096"});
  EXPECT_TRUE(AskWithMetadata(server.stub(), 2000).ok());
  const grpc::Status refused = AskWithMetadata(server.stub(), 4096);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(refused).reason(), "LIMIT_EXCEEDED") << refused.error_message();
  EXPECT_EQ(DetailOf(refused).limit(), "metadata_bytes");
  EXPECT_GE(DetailOf(refused).actual_value(), 4096 + 6 + 32) << "names and values, and what HTTP/2 counts of each";
  EXPECT_TRUE(AskWithMetadata(server.stub(), 2000).ok());
  EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_handled_total", "RESOURCE_EXHAUSTED") == 1; }));
}

TEST(MetadataTest, IsBoundedOfEveryKindOfCall) {
  InProcessServer server({"limits.metadata_bytes=4096"});
  v1::Compute::Stub& stub = server.stub();
  const auto fill = [](grpc::ClientContext* context) { context->AddMetadata("filler", std::string(5000, 'x')); };
  grpc::ClientContext unary, upload, download, stream;
  for (grpc::ClientContext* context : {&unary, &upload, &download, &stream}) fill(context);
  v1::ExecuteResponse executed;
  EXPECT_EQ(DetailOf(stub.Execute(&unary, v1::ExecuteRequest(), &executed)).limit(), "metadata_bytes");
  v1::PutTensorResponse put;
  EXPECT_EQ(DetailOf(stub.PutTensor(&upload, &put)->Finish()).limit(), "metadata_bytes");
  EXPECT_EQ(DetailOf(stub.GetTensor(&download, v1::GetTensorRequest())->Finish()).limit(), "metadata_bytes");
  EXPECT_EQ(DetailOf(stub.ExecuteStream(&stream)->Finish()).limit(), "metadata_bytes");
}

TEST(MetadataTest, TooMuchOfItEndsNoOtherCall) {
  InProcessServer server;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&server, i] {
      for (size_t n = 0; n < 25; ++n) {
        const grpc::Status large = AskWithMetadata(server.stub(), 17000 + 100 * n + static_cast<size_t>(i));
        EXPECT_EQ(DetailOf(large).limit(), "metadata_bytes") << large.error_message();
      }
    });
    callers.emplace_back([&server] {
      for (int n = 0; n < 50; ++n) {
        const grpc::Status small = AskWithMetadata(server.stub(), 10);
        EXPECT_TRUE(small.ok()) << small.error_message();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace tensord
