// The bound of connections, and its protection of the rest of the server.
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/observe/metrics_page_at.h"
#include "tests/e2e/server/server_process.h"
#include "tests/testlib/peers/tcp_client.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<grpc::Channel> NewChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

// Returns the status of a call on a new connection.
grpc::StatusCode Ask(const std::string& target) {
  return CallRaw(NewChannel(target), "grpc.health.v1.Health/Check", "").status.error_code();
}

grpc::StatusCode AskAsOperator(const std::string& target) {
  const auto admin = v1::Admin::NewStub(NewChannel(target));
  grpc::ClientContext context;
  v1::ListProgramsResponse response;
  return admin->ListPrograms(&context, v1::ListProgramsRequest(), &response).error_code();
}

// A new connection on which a call was let in.
std::shared_ptr<grpc::Channel> NewUsed(const std::string& target) {
  auto channel = NewChannel(target);
  EXPECT_TRUE(CallRaw(channel, "tensord.v1.Compute/GetServerInfo", "").status.ok());
  return channel;
}

TEST(ConnectionsTest, FurtherOnesAreClosedUntilOthersGo) {
  const PrivateFolder folder;
  InProcessServer server({"listen=127.0.0.1:0", "limits.connections=3", "limits.connections_per_address=0",
                          "admin.listen=unix:" + folder.PathOf("admin")});
  const std::string target = server.daemon().grpc_addresses().at(1);
  const auto open = [&] { return server.Metric("tensord_connections", "calls"); };
  EXPECT_EQ(open(), 0);
  const auto channel = NewUsed(target);
  std::deque<std::shared_ptr<grpc::Channel>> used = {NewUsed(target), NewUsed(target)};
  ASSERT_TRUE(WaitFor([&] { return open() == 3; }));
  EXPECT_EQ(Ask(target), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Ask(server.target()), grpc::StatusCode::UNAVAILABLE) << "of so few places the socket has none for itself";
  EXPECT_GE(server.Metric("tensord_connections_refused_total", "calls"), 2);
  EXPECT_TRUE(CallRaw(channel, "grpc.health.v1.Health/Check", "").status.ok()) << "who is connected goes on";
  EXPECT_EQ(AskAsOperator(server.daemon().admin_address()), grpc::StatusCode::OK)
      << "operators have places of their own";

  used.pop_back();
  EXPECT_TRUE(WaitFor([&] { return Ask(target) == grpc::StatusCode::OK; })) << "who goes leaves a place";
  ASSERT_TRUE(WaitFor([&] { return open() == 2; })) << "that call's connection is gone too";
  used.push_back(NewUsed(target));
  ASSERT_TRUE(WaitFor([&] { return open() == 3; }));
  EXPECT_EQ(Ask(target), grpc::StatusCode::UNAVAILABLE);
  server::ServerConfig next = server.daemon().config();
  next.mutable_limits()->set_connections(8);
  server.daemon().Reload(next);
  EXPECT_EQ(Ask(target), grpc::StatusCode::OK);
}

TEST(ConnectionsTest, WhoOnlyConnectsLocksNobodyOut) {
  InProcessServer server({"listen=127.0.0.1:0", "limits.connections=8", "limits.connections_per_address=0",
                          "limits.handshake_timeout_ms=3600000"});
  const std::string target = server.daemon().grpc_addresses().at(1);
  const auto used = NewUsed(target);
  std::deque<TcpClient> idle;
  for (int i = 0; i < 20; ++i) idle.emplace_back(target).Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  EXPECT_TRUE(WaitFor([&] { return server.parts().connections->stats().unused >= 15; }));
  EXPECT_EQ(Ask(target), grpc::StatusCode::OK);
  EXPECT_EQ(Ask(server.target()), grpc::StatusCode::OK);
  EXPECT_TRUE(CallRaw(used, "grpc.health.v1.Health/Check", "").status.ok());
  EXPECT_EQ(server.Metric("tensord_connections_refused_total", "calls"), 0);
}

TEST(ConnectionsTest, UnixSocketsHavePlacesThatTcpDoesNotGet) {
  InProcessServer server({"listen=127.0.0.1:0", "limits.connections=4", "limits.connections_per_address=0"});
  const std::string target = server.daemon().grpc_addresses().at(1);
  const std::vector<std::shared_ptr<grpc::Channel>> used = {NewUsed(target), NewUsed(target), NewUsed(target)};
  EXPECT_EQ(Ask(target), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Ask(server.target()), grpc::StatusCode::OK);
}

TEST(ConnectionsTest, AnAddressHasHalfOfThePlaces) {
  InProcessServer server({"listen=127.0.0.1:0", "limits.connections=4"});
  const std::string target = server.daemon().grpc_addresses().at(1);
  const std::vector<std::shared_ptr<grpc::Channel>> used = {NewUsed(target), NewUsed(target)};
  EXPECT_EQ(Ask(target), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server.Metric("tensord_limit", "connections_per_address"), 2);
}

TEST(ConnectionsTest, OneThatDoesNotBeginIsClosed) {
  InProcessServer server({"listen=127.0.0.1:0", "limits.handshake_timeout_ms=50"});
  TcpClient silent(server.daemon().grpc_addresses().at(1));
  silent.Receive();  // until the server closes it
  EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_connections", "calls") == 0; }));
}

TEST(ConnectionsTest, OneThatIsIdleEndsAndItsClientNotices) {
  InProcessServer server({"listen=127.0.0.1:0", "limits.connection_idle_ms=50"});
  const auto channel = NewChannel(server.daemon().grpc_addresses().at(1));
  for (int i = 0; i < 3; ++i) {
    // A slow machine takes so long to connect that the connection is idle before it has a call, which then fails.
    EXPECT_TRUE(WaitFor([&] { return CallRaw(channel, "grpc.health.v1.Health/Check", "").status.ok(); }));
    EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_connections", "calls") == 0; }));
  }
}

TEST(ConnectionsTest, NoNumberOfClientsTakesTheLastDescriptor) {
  const PrivateFolder folder;
  const std::string admin = "unix:" + folder.PathOf("admin"), errors = folder.PathOf("errors");
  Process server({"--listen=127.0.0.1:0", "--metrics=127.0.0.1:0", "--admin=" + admin, "--set",
                  "limits.handshake_timeout_ms=3600000", "--set", "limits.connections_per_address=0"},
                 errors, {"/bin/sh", "-c", "ulimit -n 300 && exec \"$@\"", "sh"});
  const std::string target = AddressIn(server.Line()), metrics = AddressIn(server.Line());
  ASSERT_TRUE(absl::StartsWith(metrics, "127.0.0.1:")) << metrics;
  std::deque<TcpClient> idle;
  for (int i = 0; i < 400; ++i) idle.emplace_back(target);
  const auto says = [page = MetricsPageAt(metrics)](const std::string& line) { return page.Says(line); };
  // 300 without 224 for all else.
  EXPECT_TRUE(WaitFor([&] { return says("tensord_connections{listener=\"calls\"} 76"); }));
  EXPECT_TRUE(
      WaitFor([&] { return says("tensord_connections_ended_total{listener=\"calls\",reason=\"unused\"} 324"); }));
  EXPECT_TRUE(says("tensord_limit{limit=\"connections\"} 76"));
  EXPECT_EQ(AskAsOperator(admin), grpc::StatusCode::OK);
  idle.clear();
  EXPECT_TRUE(WaitFor([&] { return Ask(target) == grpc::StatusCode::OK; }));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  std::ifstream file(errors);
  const std::string log((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(log, HasSubstr("at most 76 at once instead of limits.connections, 1024"));
}

TEST(ConnectionsTest, ANameIsListenedAtWhereverItLeads) {
  InProcessServer server({"listen=localhost:0"});
  const std::string target = server.daemon().grpc_addresses().at(1);
  EXPECT_EQ(target.substr(0, 10), "localhost:");
  EXPECT_EQ(Ask("127.0.0.1" + target.substr(target.rfind(':'))), grpc::StatusCode::OK);
}

}  // namespace
}  // namespace tensord
