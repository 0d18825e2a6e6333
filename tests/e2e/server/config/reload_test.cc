// A running server takes new settings, callers and certificates, or keeps the old ones.
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "tests/e2e/server/config/changed_config.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/peers/tensor_chunk.h"
#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"
#include "tests/testlib/tls/server_certificate.h"

namespace tensord {
namespace {

std::string LineOf(const std::string& tenant, const std::string& token) {
  return tenant + " execute,read " + Fingerprint::Of(token).ToHex() + "\n";
}

// Asks over TCP on a new connection.
grpc::StatusCode AskOver(InProcessServer& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                         const std::string& token = "") {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub =
      v1::Compute::NewStub(grpc::CreateCustomChannel(server.daemon().grpc_addresses().at(1), credentials, arguments));
  grpc::ClientContext context;
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  v1::ServerInfo info;
  return stub->GetServerInfo(&context, v1::GetServerInfoRequest(), &info).error_code();
}

grpc::StatusCode AskWith(InProcessServer& server, const std::string& token) {
  return AskOver(server, grpc::InsecureChannelCredentials(), token);
}

double Reloads(InProcessServer& server, const std::string& cause, const std::string& result) {
  for (const auto& family : server.parts().metrics->registry()->Collect()) {
    if (family.name != "tensord_config_reloads_total") continue;
    for (const auto& metric : family.metric) {
      if (metric.label[0].value == cause && metric.label[1].value == result) return metric.counter.value;
    }
  }
  return -1;
}

// How many events of that name the server remembers.
int Events(InProcessServer& server, const std::string& name) {
  int count = 0;
  for (const server::FlightEntry& entry : server.parts().recorder->Read(4096, /*notable_only=*/true).entries) {
    count += entry.is_event && absl::StartsWith(entry.text.view(), name) ? 1 : 0;
  }
  return count;
}

TEST(ReloadTest, SettingsChangeTogetherOrNotAtAll) {
  InProcessServer server({"limits.in_flight_bytes=1048576"});
  const server::ServerConfig running = server.daemon().config();
  server.daemon().Reload(Changed(running, {"limits.in_flight_bytes=4096", "limits.default_deadline_ms=5000",
                                           "log.level=error", "program_cache.bytes=7", "compiler.threads=7"}));
  EXPECT_EQ(Reloads(server, "signal", "ok"), 1);
  EXPECT_EQ(LimitOf(server, "in_flight_bytes"), 4096);
  EXPECT_EQ(LimitOf(server, "default_deadline_ms"), 5000);
  EXPECT_EQ(LimitOf(server, "program_cache.bytes"), 7);
  EXPECT_TRUE(server.parts().log->Logs(server::LogLevel::kError));
  EXPECT_FALSE(server.parts().log->Logs(server::LogLevel::kWarning));
  EXPECT_EQ(absl::Duration(server.parts().service_parts.admission.default_deadline), absl::Seconds(5));

  server.daemon().Reload(Changed(running, {"log.level=off", "identity.file=/does/not/exist"}));
  server.daemon().Reload(absl::InvalidArgumentError("the file is no configuration"));
  EXPECT_EQ(Reloads(server, "signal", "refused"), 2);
  EXPECT_TRUE(server.parts().log->Logs(server::LogLevel::kError)) << "nothing of it was taken";
}

TEST(ReloadTest, WhatARestartWouldRefuseIsRefused) {
  InProcessServer server({"log.level=error"});
  const server::ServerConfig running = server.daemon().config();
  const std::vector<std::vector<std::string>> wrong = {{"tls.certificate=/does/not/exist", "tls.key=/nor/this"},
                                                       {"admin.listen=nonsense"},
                                                       {"admin.listen=" + server.target()},
                                                       {"metrics=127.0.0.1"},
                                                       {"warm_up.graphs=/does/not/exist.json"},
                                                       {"families.plugins=/does/not/exist.so"},
                                                       {"program_cache.disk_path=/does/not/exist/programs"},
                                                       {"tracing.endpoint=nonsense"}};
  for (std::vector<std::string> settings : wrong) {
    SCOPED_TRACE(settings[0]);
    const double refused = Reloads(server, "signal", "refused");
    settings.push_back("log.level=off");
    server.daemon().Reload(Changed(running, settings));
    EXPECT_EQ(Reloads(server, "signal", "refused"), refused + 1);
    EXPECT_TRUE(server.parts().log->Logs(server::LogLevel::kError)) << "nothing of it was taken";
  }
  EXPECT_EQ(Reloads(server, "signal", "ok"), 0);
}

std::string ReasonOfRun(InProcessServer& server) {
  v1::ExecuteResponse response;
  const v1::ExecuteRequest request = RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  const grpc::Status status = Execute(server.stub(), request, &response);
  return status.ok() ? "OK" : DetailOf(status).reason() + " " + DetailOf(status).limit();
}

TEST(ReloadTest, SchedulingChangesWithoutARestart) {
  InProcessServer server({"cpu.executors=1", "cpu.queue_length=2"});
  const server::ServerConfig running = server.daemon().config();
  EXPECT_EQ(ReasonOfRun(server), "OK");
  server.daemon().Reload(
      Changed(running, {"scheduling.tenant_queue_percent=50", "scheduling.max_priority=-1", "scheduling.ageing_ms=7",
                        "scheduling.max_wait_ms=5", "scheduling.tenant_in_flight_percent=50"}));
  EXPECT_EQ(int64_t{server.parts().service_parts.devices.max_priority}, -1);
  {
    BlockedExecutor blocked(server);
    std::thread waiting([&] { EXPECT_EQ(ReasonOfRun(server), "OK"); });
    EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
    EXPECT_EQ(ReasonOfRun(server), "QUEUE_FULL scheduling.tenant_queue_percent");
    blocked.Release();
    waiting.join();
  }
  server.daemon().Reload(Changed(running, {"scheduling.tenant_requests_per_second=1", "scheduling.tenant_burst=1"}));
  std::string reason = "OK";
  for (int i = 0; i < 1000 && reason == "OK"; ++i) reason = ReasonOfRun(server);
  EXPECT_EQ(reason, "RATE_LIMITED scheduling.tenant_requests_per_second");
  server.daemon().Reload(running);
  EXPECT_EQ(LimitOf(server, "scheduling.tenant_requests_per_second"), 0);
  EXPECT_EQ(ReasonOfRun(server), "OK");
  EXPECT_EQ(Reloads(server, "signal", "ok"), 3);
}

// With the times it was started with this would take two hours.
TEST(ReloadTest, TheEndKeepsToNewTimes) {
  InProcessServer server({"cpu.executors=1", "drain.grace_ms=3600000", "drain.timeout_ms=3600000"});
  const v1::ExecuteRequest warm =
      WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  server.daemon().Reload(Changed(server.daemon().config(), {"drain.grace_ms=0", "drain.timeout_ms=1"}));
  EXPECT_EQ(Reloads(server, "signal", "ok"), 1);
  BlockedExecutor blocked(server);
  std::thread in_progress([&] {
    v1::ExecuteResponse response;
    EXPECT_FALSE(Execute(server.stub(), warm, &response).ok());
  });
  EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
  server.RequestStop();
  in_progress.join();
  EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued == 0; }));
  blocked.Release();
  server.WaitUntilStopped();
}

TEST(ReloadTest, CallersComeAndGo) {
  const PrivateFolder folder;
  const std::string path = folder.Write("callers", LineOf("a", "token-a"));
  InProcessServer server({"listen=127.0.0.1:0", "identity.file=" + path, "reload.check_files_ms=5"});
  EXPECT_EQ(AskWith(server, "token-a"), grpc::StatusCode::OK);
  EXPECT_EQ(AskWith(server, "token-b"), grpc::StatusCode::UNAUTHENTICATED);
  folder.Write("callers", LineOf("b", "token-b"));
  EXPECT_TRUE(WaitFor([&] { return Reloads(server, "file", "ok") == 1; }));
  EXPECT_EQ(AskWith(server, "token-b"), grpc::StatusCode::OK);
  EXPECT_EQ(AskWith(server, "token-a"), grpc::StatusCode::UNAUTHENTICATED);
  folder.Write("callers", "c execute oops\n");
  EXPECT_TRUE(WaitFor([&] { return Reloads(server, "file", "refused") == 1; }));
  EXPECT_EQ(AskWith(server, "token-b"), grpc::StatusCode::OK) << "a wrong file changes nothing";
  folder.Write("callers", LineOf("c", "token-c"));
  EXPECT_TRUE(WaitFor([&] { return AskWith(server, "token-c") == grpc::StatusCode::OK; }));
  server.daemon().Reload(server.daemon().config());
  EXPECT_EQ(Reloads(server, "signal", "ok"), 1);
}

// Editors that write a file in place empty it first.
TEST(ReloadTest, AFileWithoutCallersLocksNobodyOut) {
  const PrivateFolder folder;
  const std::string path = folder.Write("callers", LineOf("a", "token-a"));
  InProcessServer server({"listen=127.0.0.1:0", "identity.file=" + path, "reload.check_files_ms=5"});
  folder.Write("callers", "");
  EXPECT_TRUE(WaitFor([&] { return Reloads(server, "file", "refused") == 1; }));
  EXPECT_EQ(AskWith(server, "token-a"), grpc::StatusCode::OK);
  folder.Write("callers", "# to be filled\n");
  EXPECT_TRUE(WaitFor([&] { return Reloads(server, "file", "refused") == 2; }));
  EXPECT_EQ(AskWith(server, "token-a"), grpc::StatusCode::OK);
  server.daemon().Reload(server.daemon().config());
  EXPECT_EQ(Reloads(server, "signal", "refused"), 1);
  EXPECT_EQ(AskWith(server, "token-a"), grpc::StatusCode::OK);
  folder.Write("callers", LineOf("b", "token-b"));
  EXPECT_TRUE(WaitFor([&] { return AskWith(server, "token-b") == grpc::StatusCode::OK; }));
}

// A call that was let in is decided again at its next message.
TEST(ReloadTest, OpenStreamsEndWithTheirCallers) {
  const PrivateFolder folder;
  folder.Write("callers", LineOf("a", "token-a"));
  InProcessServer server(
      {"listen=127.0.0.1:0", "identity.file=" + folder.PathOf("callers"), "reload.check_files_ms=0"});
  const auto stub = v1::Compute::NewStub(
      grpc::CreateChannel(server.daemon().grpc_addresses().at(1), grpc::InsecureChannelCredentials()));
  const auto session = server.parts().sessions->Open("a", absl::Hours(1));
  ASSERT_TRUE(session.ok());
  constexpr int64_t kLarge = int64_t{64} << 20;  // more than the transport takes before the client reads
  {
    const server::ResidentType type = {
        .device = "cpu:0", .type = {DType::kBool, {kLarge}}, .order = Order::kColumnMajor};
    auto upload = (*session)->StartUpload("large", type, (*server.parts().executors->Find("cpu:0"))->backend());
    ASSERT_TRUE(upload.ok()) << upload.status();
    upload->Advance(kLarge);
    ASSERT_TRUE(upload->Commit().ok());
  }
  grpc::ClientContext executing, uploading, downloading, staying;
  for (grpc::ClientContext* context : {&executing, &uploading, &downloading}) {
    context->AddMetadata("authorization", "Bearer token-a");
  }
  const v1::Tensor ones = FloatTensor(std::vector<float>(16, 1), {16});
  const v1::ExecuteRequest request = RequestOf(SmallAdd(), {ones, ones});
  const auto stream = stub->ExecuteStream(&executing);
  const auto trusted = server.stub().ExecuteStream(&staying);
  v1::ExecuteResponse response;
  ASSERT_TRUE(stream->Write(request) && stream->Read(&response));
  v1::PutTensorResponse put;
  const auto upload = stub->PutTensor(&uploading, &put);
  v1::PutTensorRequest header;
  header.mutable_header()->set_session((*session)->id());
  header.mutable_header()->set_handle("small");
  header.mutable_header()->set_dtype(v1::DTYPE_BOOL);
  header.mutable_header()->add_shape(1);
  upload->Write(header);
  v1::GetTensorRequest get;
  get.set_session((*session)->id());
  get.set_handle("large");
  const auto download = stub->GetTensor(&downloading, get);
  v1::GetTensorResponse chunk;
  ASSERT_TRUE(download->Read(&chunk));
  ASSERT_TRUE(WaitFor([&] { return (*session)->counts().handles == 2; }));  // the upload has begun

  folder.Write("callers", LineOf("b", "token-b"));
  server.daemon().Reload(server.daemon().config());
  stream->Write(request);
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  upload->Write(ChunkOf(0, std::string(1, 1)));
  upload->WritesDone();
  EXPECT_EQ(upload->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  while (download->Read(&chunk)) {
  }
  EXPECT_EQ(download->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(server.Metric("tensord_auth_refusals_total", "unknown_token"), 3);

  EXPECT_TRUE(trusted->Write(request) && trusted->Read(&response)) << "who still may goes on";
  trusted->WritesDone();
  EXPECT_TRUE(trusted->Finish().ok());
}

// The state after SIGHUP while the file of settings is half written, or after a deployment lost a line of it.
TEST(ReloadTest, DoesNotOpenTheServerUnlessItIsSpelledOut) {
  const PrivateFolder folder;
  InProcessServer server({"listen=127.0.0.1:0", "identity.file=" + folder.Write("callers", LineOf("a", "token-a"))});
  const server::ServerConfig running = server.daemon().config();
  server.daemon().Reload(Changed(running, {"identity.file=", "log.requests=false"}));
  EXPECT_EQ(Reloads(server, "signal", "refused"), 1);
  EXPECT_EQ(AskWith(server, ""), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(AskWith(server, "token-a"), grpc::StatusCode::OK);

  server.daemon().Reload(Changed(running, {"identity.file=", "identity.required=off"}));
  EXPECT_EQ(Reloads(server, "signal", "ok"), 1);
  EXPECT_EQ(AskWith(server, ""), grpc::StatusCode::OK);
}

TEST(ReloadTest, CertificatesAreRenewedUnderOpenConnections) {
  const PrivateFolder folder;
  const CertificateAuthority old_ca("old CA"), new_ca("new CA");
  WriteServerCertificate(folder, old_ca.Issue());
  InProcessServer server(CertificateSettings(folder, {"listen=127.0.0.1:0", "reload.check_files_ms=0"}));
  const auto trusts = [](const CertificateAuthority& ca) { return grpc::SslCredentials({ca.certificate(), "", ""}); };
  const auto open = grpc::CreateChannel(server.daemon().grpc_addresses().at(1), trusts(old_ca));
  EXPECT_EQ(CallRaw(open, "grpc.health.v1.Health/Check", "").bytes, "\x08\x01");

  const IssuedCertificate renewed = new_ca.Issue({.end = absl::Hours(5)});
  folder.Write("server.pem", renewed.certificate, 0644);  // its key is not there yet
  server.daemon().Reload(server.daemon().config());
  EXPECT_EQ(Reloads(server, "signal", "refused"), 1);
  EXPECT_EQ(AskOver(server, trusts(old_ca)), grpc::StatusCode::OK);

  WriteServerCertificate(folder, renewed);
  server.daemon().Reload(server.daemon().config());
  EXPECT_EQ(Reloads(server, "signal", "ok"), 1);
  EXPECT_EQ(AskOver(server, trusts(new_ca)), grpc::StatusCode::OK);
  EXPECT_EQ(AskOver(server, trusts(old_ca)), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(CallRaw(open, "grpc.health.v1.Health/Check", "").bytes, "\x08\x01") << "open connections stay";
  EXPECT_NEAR(server.Metric("tensord_tls_certificate_expiry_timestamp_seconds", "server"),
              absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()) + 5 * 3600, 600);

  WriteServerCertificate(folder, new_ca.Issue({.begin = -absl::Hours(2), .end = -absl::Hours(1)}));
  server.daemon().Reload(server.daemon().config());
  EXPECT_EQ(Reloads(server, "signal", "refused"), 2);
  EXPECT_EQ(AskOver(server, trusts(new_ca)), grpc::StatusCode::OK) << "an expired one is not taken";
}

// Else nobody could take a token away until the certificate is renewed.
TEST(ReloadTest, AnExpiredCertificateInUseKeepsNothingElseBack) {
  const PrivateFolder folder;
  const CertificateAuthority ca;
  WriteServerCertificate(folder, ca.Issue());
  folder.Write("callers", LineOf("a", "token-a"));
  InProcessServer server(CertificateSettings(
      folder, {"listen=127.0.0.1:0", "identity.file=" + folder.PathOf("callers"), "reload.check_files_ms=0"}));
  const IssuedCertificate expired = ca.Issue({.begin = -absl::Hours(2), .end = -absl::Hours(1)});
  WriteServerCertificate(folder, expired);
  server.parts().tls->Replace({.certificate = expired.certificate, .key = expired.key});
  folder.Write("callers", LineOf("b", "token-b"));
  server.daemon().Reload(server.daemon().config());
  EXPECT_EQ(Reloads(server, "signal", "ok"), 1);
  EXPECT_EQ(server.parts().authenticator->policy()->table->FindToken("token-a"), nullptr);
}

TEST(ReloadTest, TheLogTellsOnceThatTheCertificateInUseHasEnded) {
  const PrivateFolder folder;
  const CertificateAuthority ca;
  WriteServerCertificate(folder, ca.Issue());
  ::testing::internal::CaptureStderr();
  {
    InProcessServer server(
        CertificateSettings(folder, {"listen=127.0.0.1:0", "reload.check_files_ms=0", "log.level=info"}));
    // That of a moment: it may have ended before the server looks at it, and is refused then.
    for (absl::Duration life = absl::Seconds(1); Reloads(server, "signal", "ok") == 0; life *= 2) {
      WriteServerCertificate(folder, ca.Issue({.end = life}));
      server.daemon().Reload(server.daemon().config());
    }
    EXPECT_TRUE(WaitFor([&] { return Events(server, "certificate expired") == 1; }));
    WriteServerCertificate(folder, ca.Issue());
    server.daemon().Reload(server.daemon().config());
    EXPECT_EQ(Reloads(server, "signal", "ok"), 2);
    EXPECT_EQ(Events(server, "certificate expired"), 1);
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("tls.certificate ended at "));
}

TEST(ReloadTest, WhatAnOperatorSetByHandStays) {
  InProcessServer server({"log.level=error"});
  server.parts().log->SetLevel(server::LogLevel::kOff);
  server.daemon().Reload(Changed(server.daemon().config(), {"log.requests=false"}));
  EXPECT_EQ(Reloads(server, "signal", "ok"), 1);
  EXPECT_FALSE(server.parts().log->Logs(server::LogLevel::kError));
  server.daemon().Reload(Changed(server.daemon().config(), {"log.level=warning"}));
  EXPECT_TRUE(server.parts().log->Logs(server::LogLevel::kWarning));
}

TEST(ReloadTest, TheLogTellsOfAReloadThatTurnsItDown) {
  ::testing::internal::CaptureStderr();
  {
    InProcessServer server({"log.level=info"});
    server.daemon().Reload(Changed(server.daemon().config(), {"log.level=off", "limits.default_deadline_ms=5000"}));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("changed: limits.default_deadline_ms, log.level"));
}

}  // namespace
}  // namespace tensord
