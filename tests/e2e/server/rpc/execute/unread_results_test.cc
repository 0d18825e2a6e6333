// Unread results of one tenant's clients keep no other tenant from memory.
#include <grpcpp/client_context.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/fingerprint.h"
#include "gtest/gtest.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/peers/http2_peer.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

constexpr int kResults = 3;  // of a MiB each, of which half of the memory has two
constexpr char kMemory[] = "cpu.memory_bytes=5000000";

v1::ExecuteRequest Numbers() {
  v1::ExecuteRequest request;
  *request.mutable_graph() = GraphOf(R"(
    nodes { name: "y" iota { type { dtype: DTYPE_F32 shape { size: 262144 } } } }
    outputs { name: "y" value: "y" })");
  return request;
}

class UnreadResultsTest : public ::testing::Test {
 protected:
  std::string Line(const std::string& tenant) const {
    return absl::StrCat(tenant, " execute,read ", Fingerprint::Of("token-" + tenant).ToHex(), "\n");
  }
  // A connection of team-a that reads nothing.
  std::unique_ptr<Http2Peer> NewPeer() { return std::make_unique<Http2Peer>(server_.daemon().grpc_addresses().at(1)); }
  static std::string Header() { return Http2Peer::Header("authorization", "Bearer token-team-a"); }
  grpc::Status Run(const std::string& tenant) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer token-" + tenant);
    v1::ExecuteResponse response;
    return stub_->Execute(&context, Numbers(), &response);
  }
  int64_t Held() { return server_.parts().unread_results->held(); }
  void ExpectThatOnlyTheirTenantIsRefused() {
    EXPECT_TRUE(WaitFor([this] { return Held() >= 2 << 20; })) << Held();
    EXPECT_TRUE(WaitFor([this] { return DetailOf(Run("team-a")).reason() == "LIMIT_EXCEEDED"; }));
    EXPECT_EQ(DetailOf(Run("team-a")).limit(), "scheduling.tenant_unread_percent");
    EXPECT_LE(Held(), 2'500'000);
    const grpc::Status other = Run("team-b");
    EXPECT_TRUE(other.ok()) << other.error_message();
  }
  void ExpectThatTheyAreGone() {
    EXPECT_TRUE(WaitFor([this] { return Held() == 0; })) << Held();
    EXPECT_TRUE(Run("team-a").ok());
  }

  const PrivateFolder folder_;
  const std::string callers_ = folder_.Write("callers", Line("team-a") + Line("team-b"));
  InProcessServer server_{{"listen=127.0.0.1:0", "identity.file=" + callers_, kMemory}};
  const std::unique_ptr<v1::Compute::Stub> stub_ = v1::Compute::NewStub(
      grpc::CreateChannel(server_.daemon().grpc_addresses().at(1), grpc::InsecureChannelCredentials()));
};

TEST_F(UnreadResultsTest, OfCallsCountAsTheirTenants) {
  std::unique_ptr<Http2Peer> peer = NewPeer();
  for (uint32_t i = 0; i < kResults; ++i) {
    EXPECT_TRUE(
        peer->Send(Http2Peer::Call(2 * i + 1, "/tensord.v1.Compute/Execute", Numbers().SerializeAsString(), Header())));
  }
  ExpectThatOnlyTheirTenantIsRefused();
  peer.reset();
  ExpectThatTheyAreGone();
}

TEST_F(UnreadResultsTest, OfAStreamCountAsTheirTenants) {
  std::unique_ptr<Http2Peer> peer = NewPeer();
  EXPECT_TRUE(peer->Send(Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, 1,
                                          Http2Peer::CallHeaders("/tensord.v1.Compute/ExecuteStream") + Header())));
  for (uint64_t i = 1; i <= kResults; ++i) {
    v1::ExecuteRequest request = Numbers();
    request.set_request_id(i);
    EXPECT_TRUE(peer->Send(Http2Peer::Frame(Http2Peer::kData, 0, 1, Http2Peer::Message(request.SerializeAsString()))));
  }
  ExpectThatOnlyTheirTenantIsRefused();
  peer.reset();
  ExpectThatTheyAreGone();
}

// What a run has written over is lost to who is refused afterwards.
TEST(DonatedUnreadResultsTest, WhoIsRefusedKeepsWhatWasDonated) {
  constexpr int kHandles = 8;  // of 2 MiB each, of which 8 MB has three
  const PrivateFolder folder;
  const std::string callers =
      folder.Write("callers", absl::StrCat("team-a execute,read ", Fingerprint::Of("token-team-a").ToHex(),
                                           "\nteam-b execute ", Fingerprint::Of("token-team-b").ToHex(), "\n"));
  InProcessServer server({"listen=127.0.0.1:0", "identity.file=" + callers, "cpu.memory_bytes=40000000",
                          "scheduling.tenant_unread_percent=20"});
  const std::string address = server.daemon().grpc_addresses().at(1);
  const auto stub = v1::Compute::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  const auto execute = [&](const v1::ExecuteRequest& request) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer token-team-a");
    v1::ExecuteResponse response;
    return stub->Execute(&context, request, &response);
  };
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer token-team-a");
  v1::Session session;
  ASSERT_TRUE(stub->OpenSession(&context, v1::OpenSessionRequest(), &session).ok());
  for (int i = 0; i < kHandles; ++i) {
    v1::ExecuteRequest request;
    *request.mutable_graph() = GraphOf(R"(
      nodes { name: "y" iota { type { dtype: DTYPE_F32 shape { size: 524288 } } } }
      outputs { name: "y" value: "y" })");
    request.set_session(session.id());
    v1::ResultOption* const result = request.add_results();
    result->set_delivery(v1::ResultOption::DELIVERY_KEEP);
    result->set_handle(absl::StrCat("t", i));
    const grpc::Status kept = execute(request);
    ASSERT_TRUE(kept.ok()) << kept.error_message();
  }
  v1::ExecuteRequest sine;
  *sine.mutable_graph() = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 524288 } } }
    nodes { name: "y" inputs: "x" unary: UNARY_OP_SIN }
    outputs { name: "y" value: "y" })");
  sine.set_session(session.id());
  Http2Peer peer(address);
  {
    BlockedExecutor blocked(server);
    for (int i = 0; i < kHandles; ++i) {
      v1::ExecuteRequest request = sine;
      request.add_arguments()->set_donated_handle(absl::StrCat("t", i));
      EXPECT_TRUE(peer.Send(Http2Peer::Call(static_cast<uint32_t>(2 * i + 1), "/tensord.v1.Compute/Execute",
                                            request.SerializeAsString(),
                                            Http2Peer::Header("authorization", "Bearer token-team-a"))));
    }
    EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued == kHandles; }));
  }
  // All but those with an unread result have ended.
  const auto held = [&] { return server.parts().unread_results->held() >> 21; };
  EXPECT_TRUE(WaitFor([&] {
    const DeviceExecutor::Stats stats = server.executor().stats();
    return stats.queued + stats.running == 0 && held() > 0 && server.parts().gate->snapshot().calls == held();
  }));
  v1::ExecuteRequest first;
  *first.mutable_graph() = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 524288 } } }
    nodes { name: "y" inputs: "x" slice { start_indices: 0 limit_indices: 1 strides: 1 } }
    outputs { name: "y" value: "y" })");
  first.set_session(session.id());
  int lost = 0;
  for (int i = 0; i < kHandles; ++i) {
    v1::ExecuteRequest request = first;
    request.add_arguments()->set_handle(absl::StrCat("t", i));
    const grpc::Status status = execute(request);
    if (status.ok()) continue;
    EXPECT_EQ(DetailOf(status).reason(), "HANDLE_UNKNOWN") << status.error_message();
    ++lost;
  }
  EXPECT_EQ(lost, 3);
  EXPECT_EQ(held(), lost);
}

}  // namespace
}  // namespace tensord
