// One tenant's state on the server is nothing to another: sessions, handles, uploads, lists and counts.
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A client with a token, over TCP.
class Tenant {
 public:
  Tenant(InProcessServer& server, std::string token)
      : token_(std::move(token)),
        stub_(v1::Compute::NewStub(
            grpc::CreateChannel(server.daemon().grpc_addresses().at(1), grpc::InsecureChannelCredentials()))) {}

  std::string OpenSession() {
    v1::Session session;
    EXPECT_EQ(Call(&v1::Compute::Stub::OpenSession, v1::OpenSessionRequest(), &session), "OK");
    return session.id();
  }
  std::string CloseSession(const std::string& session) {
    v1::CloseSessionRequest request;
    request.set_session(session);
    v1::CloseSessionResponse response;
    return Call(&v1::Compute::Stub::CloseSession, request, &response);
  }
  std::string DeleteTensor(const std::string& session, const std::string& handle) {
    v1::DeleteTensorsRequest request;
    request.set_session(session);
    request.add_handles(handle);
    v1::DeleteTensorsResponse response;
    return Call(&v1::Compute::Stub::DeleteTensors, request, &response);
  }
  // x + x of these numbers, kept under the handle.
  std::string Keep(const std::string& session, const std::string& handle, const std::vector<float>& values) {
    v1::ExecuteRequest request = RequestOf(DoubleGraph(), {FloatTensor(values, {static_cast<int64_t>(values.size())})});
    request.set_session(session);
    tensord::Keep(&request, handle);
    v1::ExecuteResponse response;
    return Call(&v1::Compute::Stub::Execute, request, &response);
  }
  // Twice what the handle has.
  std::string Use(const std::string& session, const std::string& handle, std::vector<float>* values) {
    v1::ExecuteRequest request = RequestOf(DoubleGraph(), {});
    request.set_session(session);
    AddHandle(&request, handle);
    v1::ExecuteResponse response;
    const std::string outcome = Call(&v1::Compute::Stub::Execute, request, &response);
    if (outcome == "OK") *values = FloatsOf(response.results(0).tensor());
    return outcome;
  }
  std::string Fetch(const std::string& session, const std::string& handle) {
    grpc::ClientContext context;
    Authorize(&context);
    v1::GetTensorRequest request;
    request.set_session(session);
    request.set_handle(handle);
    const auto stream = stub_->GetTensor(&context, request);
    v1::GetTensorResponse response;
    while (stream->Read(&response)) {
    }
    return ReasonOf(stream->Finish());
  }
  std::string Put(const std::string& session, const std::string& handle) {
    grpc::ClientContext context;
    Authorize(&context);
    v1::PutTensorResponse response;
    const auto stream = stub_->PutTensor(&context, &response);
    v1::PutTensorRequest request;
    request.mutable_header()->set_session(session);
    request.mutable_header()->set_handle(handle);
    request.mutable_header()->set_dtype(v1::DTYPE_F32);
    request.mutable_header()->add_shape(2);
    stream->Write(request);
    stream->WritesDone();
    return ReasonOf(stream->Finish());
  }
  std::string Compile(const v1::Graph& graph, std::string* fingerprint) {
    v1::CompileRequest request;
    *request.mutable_graph() = graph;
    v1::CompileResponse response;
    const std::string outcome = Call(&v1::Compute::Stub::Compile, request, &response);
    *fingerprint = response.program().fingerprint();
    return outcome;
  }
  std::string Run(const std::string& fingerprint) {
    v1::ExecuteRequest request;
    request.set_fingerprint(fingerprint);
    *request.add_arguments()->mutable_tensor() = FloatTensor(std::vector<float>(16, 1), {16});
    v1::ExecuteResponse response;
    return Call(&v1::Compute::Stub::Execute, request, &response);
  }

 private:
  void Authorize(grpc::ClientContext* context) const { context->AddMetadata("authorization", "Bearer " + token_); }
  template <typename Request, typename Response>
  std::string Call(grpc::Status (v1::Compute::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                   const Request& request, Response* response) {
    grpc::ClientContext context;
    Authorize(&context);
    return ReasonOf((stub_.get()->*method)(&context, request, response));
  }

  const std::string token_;
  const std::unique_ptr<v1::Compute::Stub> stub_;
};

class TenantsTest : public ::testing::Test {
 protected:
  std::string Line(const std::string& tenant, const std::string& token) const {
    return tenant + " execute,read " + Fingerprint::Of(token).ToHex() + "\n";
  }
  std::vector<std::string> Settings(std::vector<std::string> more = {}) const {
    more.push_back("listen=127.0.0.1:0");
    more.push_back("identity.file=" + folder_.PathOf("callers"));
    return more;
  }

  const PrivateFolder folder_;
  const std::string callers_ =
      folder_.Write("callers", Line("team-a", "token-a") + Line("team-b", "token-b") + Line("team-a", "token-a2"));
};

TEST_F(TenantsTest, SessionsAreTheirTenants) {
  InProcessServer server(Settings());
  Tenant a(server, "token-a"), again(server, "token-a2"), b(server, "token-b");
  const std::string session = a.OpenSession();
  ASSERT_EQ(a.Keep(session, "x", {1, 2, 3}), "OK");
  std::vector<float> values;
  EXPECT_EQ(b.Use(session, "x", &values), "SESSION_UNKNOWN");
  EXPECT_EQ(b.Keep(session, "y", {1}), "SESSION_UNKNOWN");
  EXPECT_EQ(b.Fetch(session, "x"), "SESSION_UNKNOWN");
  EXPECT_EQ(b.Put(session, "z"), "SESSION_UNKNOWN");
  EXPECT_EQ(b.DeleteTensor(session, "x"), "SESSION_UNKNOWN");
  EXPECT_EQ(b.CloseSession(session), b.CloseSession("no such session")) << "whether it is there is not told";
  EXPECT_EQ(server.Metric("tensord_auth_refusals_total", "other_tenant"), 6) << "but the operator knows";
  EXPECT_EQ(a.Use(session, "x", &values), "OK") << "it is untouched";
  EXPECT_EQ(values, (std::vector<float>{4, 8, 12}));
  EXPECT_EQ(again.Use(session, "x", &values), "OK") << "another token of the tenant";
  EXPECT_EQ(again.CloseSession(session), "OK");
  EXPECT_EQ(a.Use(session, "x", &values), "SESSION_UNKNOWN");
}

// A refusal that named what is there would tell others of it.
TEST_F(TenantsTest, ARefusalSaysTheSameOfWhatIsAnothersAndOfWhatIsNot) {
  InProcessServer server(Settings());
  Tenant a(server, "token-a");
  const std::string session = a.OpenSession();
  const auto message_of = [&](const std::string& id) {
    const auto stub = v1::Compute::NewStub(
        grpc::CreateChannel(server.daemon().grpc_addresses().at(1), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer token-b");
    v1::DeleteTensorsRequest request;
    request.set_session(id);
    request.add_handles("x");
    v1::DeleteTensorsResponse response;
    return stub->DeleteTensors(&context, request, &response).error_message();
  };
  std::string absent = session;
  absent.back() = absent.back() == '0' ? '1' : '0';
  std::string theirs = message_of(session), none = message_of(absent);
  for (std::string* text : {&theirs, &none}) {
    for (const std::string& id : {session, absent}) {
      if (const size_t at = text->find(id); at != std::string::npos) text->replace(at, id.size(), "ID");
    }
  }
  EXPECT_EQ(theirs, none);
}

TEST_F(TenantsTest, WhoNamesWhatIsAnothersIsToldToTheLog) {
  ::testing::internal::CaptureStderr();
  {
    InProcessServer server(Settings({"log.level=error"}));
    Tenant a(server, "token-a"), b(server, "token-b");
    const std::string session = a.OpenSession();
    EXPECT_EQ(b.DeleteTensor(session, "x"), "SESSION_UNKNOWN");
    EXPECT_EQ(b.DeleteTensor("no such session", "x"), "SESSION_UNKNOWN");
    EXPECT_EQ(a.CloseSession(session), "OK");
    EXPECT_EQ(a.DeleteTensor(session, "x"), "SESSION_UNKNOWN");
  }
  const std::vector<std::string> lines =
      absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 1u) << absl::StrJoin(lines, "\n");
  EXPECT_THAT(lines[0], AllOf(HasSubstr("\"event\":\"access_refused\""), HasSubstr("\"reason\":\"other_tenant\""),
                              HasSubstr("\"method\":\"DeleteTensors\""), HasSubstr("\"tenant\":\"team-b\""),
                              HasSubstr("\"owner\":\"team-a\""), HasSubstr("\"what\":\"session\"")));
}

TEST_F(TenantsTest, HandlesOfOneNameAreTwoTensors) {
  InProcessServer server(Settings());
  Tenant a(server, "token-a"), b(server, "token-b");
  const std::string of_a = a.OpenSession(), of_b = b.OpenSession();
  EXPECT_NE(of_a, of_b);
  ASSERT_EQ(a.Keep(of_a, "x", {1}), "OK");
  ASSERT_EQ(b.Keep(of_b, "x", {5}), "OK");
  std::vector<float> values;
  EXPECT_EQ(a.Use(of_a, "x", &values), "OK");
  EXPECT_EQ(values, std::vector<float>{4});
  EXPECT_EQ(b.Use(of_b, "x", &values), "OK");
  EXPECT_EQ(values, std::vector<float>{20});
  EXPECT_EQ(a.DeleteTensor(of_a, "x"), "OK");
  EXPECT_EQ(b.Use(of_b, "x", &values), "OK");
}

TEST_F(TenantsTest, QuotasAreATenantsOwn) {
  InProcessServer server(Settings({"sessions.tenant_count=1"}));
  Tenant a(server, "token-a"), again(server, "token-a2"), b(server, "token-b");
  a.OpenSession();
  const std::string of_b = b.OpenSession();
  EXPECT_FALSE(of_b.empty());
  // A call is counted when the transport is through with it.
  for (const char* tenant : {"team-a", "team-b"}) {
    EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_tenant_requests_total", tenant) == 1; })) << tenant;
  }
  EXPECT_EQ(server.Metric("tensord_tenant_requests_total", "default"), -1);
}

// The cache is one, and a program has no data of whoever compiled it but its constants, which its fingerprint covers:
// who names the fingerprint has the whole graph. The digest cannot be guessed.
TEST_F(TenantsTest, ProgramsAreSharedByWhoKnowsTheirFingerprint) {
  InProcessServer server(Settings());
  Tenant a(server, "token-a"), b(server, "token-b");
  std::string fingerprint, same;
  ASSERT_EQ(a.Compile(LargeSum(3), &fingerprint), "OK");
  EXPECT_EQ(fingerprint.size(), 64u) << "of 256 bits";
  EXPECT_EQ(b.Compile(LargeSum(3), &same), "OK");
  EXPECT_EQ(same, fingerprint);
  EXPECT_EQ(server.Metric("tensord_compile_requests_total", "miss"), 1) << "compiled once";
  EXPECT_EQ(b.Run(fingerprint), "OK");
  std::string guess = fingerprint;
  guess[0] = guess[0] == '0' ? '1' : '0';
  EXPECT_EQ(b.Run(guess), "PROGRAM_NOT_FOUND");
}

TEST_F(TenantsTest, NobodyWaitsForAnothersCompilations) {
  InProcessServer server(Settings({"compiler.threads=2"}));
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(server.parts().compile_pool->Submit("team-a", [released] { released.wait(); }).ok());
  }
  Tenant b(server, "token-b");
  std::string fingerprint;
  EXPECT_EQ(b.Compile(LargeSum(), &fingerprint), "OK");
  EXPECT_TRUE(WaitFor([&] {
    const auto stats = server.parts().compile_pool->stats();
    return stats.running == 2 && stats.queued == 4;
  })) << "one tenant has no more than there are";
  release.set_value();
}

TEST_F(TenantsTest, ProgramsMayBeATenantsOwn) {
  const TemporaryFolder disk;
  const std::vector<std::string> settings =
      Settings({"program_cache.by_tenant=true", "program_cache.disk_path=" + disk.path() + "/programs"});
  std::string fingerprint, other;
  {
    InProcessServer server(settings);
    Tenant a(server, "token-a"), again(server, "token-a2"), b(server, "token-b");
    ASSERT_EQ(a.Compile(LargeSum(3), &fingerprint), "OK");
    EXPECT_EQ(b.Run(fingerprint), "PROGRAM_NOT_FOUND");
    EXPECT_EQ(again.Run(fingerprint), "OK");
    EXPECT_EQ(b.Compile(LargeSum(3), &other), "OK");
    EXPECT_NE(other, fingerprint);
    EXPECT_EQ(server.Metric("tensord_compile_requests_total", "miss"), 2) << "nobody learns that another compiled it";
    EXPECT_EQ(b.Run(other), "OK");
    EXPECT_EQ(a.Run(other), "PROGRAM_NOT_FOUND");
  }
  {
    InProcessServer server(settings);
    Tenant a(server, "token-a"), b(server, "token-b");
    EXPECT_EQ(b.Run(fingerprint), "PROGRAM_NOT_FOUND");
    EXPECT_EQ(a.Run(fingerprint), "OK") << "from disk";
    EXPECT_EQ(b.Run(fingerprint), "PROGRAM_NOT_FOUND") << "from memory";
  }
  InProcessServer server(Settings({"program_cache.disk_path=" + disk.path() + "/programs"}));
  EXPECT_EQ(Tenant(server, "token-a").Run(fingerprint), "PROGRAM_NOT_FOUND") << "all share programs now";
  std::filesystem::remove_all(disk.path() + "/programs");
}

}  // namespace
}  // namespace tensord
