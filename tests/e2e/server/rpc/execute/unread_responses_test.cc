// Streams of requests whose clients do not take the responses.
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/is_slow.h"
#include "tests/testlib/peers/http2_peer.h"

namespace tensord {
namespace {

// Also the time that a request may take: one that runs longer is answered by a refusal, which is small.
constexpr absl::string_view kDefaultDeadline =
    kIsSlow ? "limits.default_deadline_ms=3000" : "limits.default_deadline_ms=400";

// A number, made 6 MiB, more than the transport takes beforehand.
v1::ExecuteRequest WideRequest(InProcessServer& server) {
  v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 } }
    nodes { name: "y" inputs: "x" broadcast_in_dim { shape { size: 1572864 } } }
    outputs { name: "y" value: "y" })");
  v1::ExecuteRequest request = WarmRequest(server.stub(), graph, {FloatTensor({1}, {})});
  request.set_request_id(1);
  return request;
}

TEST(UnreadResponsesTest, EndTheStreamAfterTheDefaultDeadline) {
  InProcessServer server({"listen=127.0.0.1:0", std::string(kDefaultDeadline)});
  const v1::ExecuteRequest request = WideRequest(server);
  grpc::ClientContext context;  // without a deadline
  const auto idle = server.stub().ExecuteStream(&context);
  ASSERT_TRUE(idle->Write(request));
  v1::ExecuteResponse response;
  ASSERT_TRUE(idle->Read(&response));  // from then on nothing is being sent to it
  ASSERT_FALSE(response.has_error()) << response.ShortDebugString();
  {
    Http2Peer peer(server.daemon().grpc_addresses().at(1));
    EXPECT_TRUE(peer.Send(Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, 1,
                                           Http2Peer::CallHeaders("/tensord.v1.Compute/ExecuteStream")) +
                          Http2Peer::Frame(Http2Peer::kData, 0, 1, Http2Peer::Message(request.SerializeAsString()))));
    EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_started_total", "ExecuteStream") == 2; }));
    EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_in_flight", "ExecuteStream") == 1; }))
        << "it holds its responses for as long as it likes";
  }
  EXPECT_TRUE(idle->Write(request));
  EXPECT_TRUE(idle->Read(&response));
  EXPECT_FALSE(response.has_error());
  idle->WritesDone();
  EXPECT_TRUE(idle->Finish().ok());
}

}  // namespace
}  // namespace tensord
