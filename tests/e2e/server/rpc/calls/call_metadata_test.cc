// The metadata of calls and answers: their id, their trace, their times.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/peers/http2_peer.h"
#include "tests/testlib/peers/tensor_chunk.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::MatchesRegex;

constexpr char kTraceparent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

std::string TrailerOf(const grpc::ClientContext& context, const std::string& name) {
  const auto& trailers = context.GetServerTrailingMetadata();
  EXPECT_EQ(trailers.count(name), 1u) << name;
  const auto found = trailers.find(name);
  return found == trailers.end() ? "" : std::string(found->second.data(), found->second.size());
}

std::map<std::string, int64_t> StagesOf(const grpc::ClientContext& context) {
  std::map<std::string, int64_t> stages;
  for (const absl::string_view stage : absl::StrSplit(TrailerOf(context, "x-tensord-stage-us"), ',')) {
    const std::vector<std::string> parts = absl::StrSplit(stage, '=');
    int64_t time = -1;
    EXPECT_TRUE(parts.size() == 2 && absl::SimpleAtoi(parts[1], &time)) << std::string(stage);
    EXPECT_GE(time, 0);
    stages[parts[0]] = time;
  }
  return stages;
}

v1::ExecuteRequest LargeRequest() { return RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})}); }

TEST(CallMetadataTest, TrailersSayWhereTheTimeWent) {
  InProcessServer server;
  {
    grpc::ClientContext context;
    v1::ExecuteResponse response;
    ASSERT_TRUE(server.stub().Execute(&context, LargeRequest(), &response).ok());
    const auto stages = StagesOf(context);
    EXPECT_THAT(stages, IsSupersetOf({Key("authenticate"), Key("admit"), Key("parse"), Key("lookup"), Key("compile"),
                                      Key("decode"), Key("queue"), Key("compute"), Key("encode")}));
    EXPECT_EQ(stages.count("await"), 0u) << "it has no handles";
    EXPECT_GT(stages.at("compile"), 0);
  }
  {
    grpc::ClientContext context;
    v1::CompileRequest request;
    *request.mutable_graph() = LargeSum();
    v1::CompileResponse response;
    ASSERT_TRUE(server.stub().Compile(&context, request, &response).ok());
    const auto stages = StagesOf(context);
    EXPECT_THAT(stages, IsSupersetOf({Key("parse"), Key("lookup"), Key("encode")}));
    EXPECT_EQ(stages.count("compile"), 0u) << "it is compiled already";
    EXPECT_EQ(stages.count("queue"), 0u);
  }
}

TEST(CallMetadataTest, RefusedCallsHaveThemToo) {
  InProcessServer server;
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "ticket-7");
  v1::ExecuteResponse response;
  EXPECT_FALSE(server.stub().Execute(&context, v1::ExecuteRequest(), &response).ok());
  EXPECT_THAT(StagesOf(context), IsSupersetOf({Key("parse")}));
  EXPECT_EQ(TrailerOf(context, "x-request-id"), "ticket-7");
}

// A run that expires while it waits has waited, not run.
TEST(CallMetadataTest, WaitingIsNotRunning) {
  InProcessServer server;
  const v1::ExecuteRequest request =
      WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  BlockedExecutor blocked(server);
  v1::ExecuteResponse response;
  grpc::ClientContext context;
  std::thread canceller([&] {
    EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued > 0; }));
    context.TryCancel();
  });
  EXPECT_FALSE(server.stub().Execute(&context, request, &response).ok());
  canceller.join();
  // The client is through with the call before the server hears of it.
  EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued == 0; }));
  blocked.Release();
  server.WaitUntilIdle();
  std::map<std::string, uint64_t> counts;
  for (const auto& family : server.parts().metrics->registry()->Collect()) {
    if (family.name != "tensord_execute_stage_seconds") continue;
    for (const auto& metric : family.metric) {
      for (const auto& label : metric.label) {
        if (label.name == "stage") counts[label.value] = metric.histogram.sample_count;
      }
    }
  }
  EXPECT_EQ(counts["queue"], 1u);
  EXPECT_EQ(counts["compute"], 0u);
}

TEST(CallMetadataTest, TransfersHaveStages) {
  InProcessServer server;
  const SessionClient session(server);
  {
    grpc::ClientContext context;
    v1::PutTensorResponse response;
    const auto upload = server.stub().PutTensor(&context, &response);
    v1::PutTensorRequest header;
    header.mutable_header()->set_session(session.id());
    header.mutable_header()->set_handle("a");
    header.mutable_header()->set_dtype(v1::DTYPE_F32);
    header.mutable_header()->add_shape(1);
    EXPECT_TRUE(upload->Write(header));
    EXPECT_TRUE(upload->Write(ChunkOf(0, "abcd")));
    upload->WritesDone();
    ASSERT_TRUE(upload->Finish().ok());
    EXPECT_THAT(StagesOf(context), IsSupersetOf({Key("receive"), Key("decode"), Key("encode")}));
  }
  server.WaitUntilIdle();
  std::map<std::string, int> stages;
  for (const auto& family : server.parts().metrics->registry()->Collect()) {
    if (family.name != "tensord_rpc_stage_seconds") continue;
    for (const auto& metric : family.metric) {
      if (metric.label[0].value != "PutTensor") continue;
      stages[metric.label[1].value] += static_cast<int>(metric.histogram.sample_count);
    }
  }
  EXPECT_THAT(stages, IsSupersetOf({Key("receive"), Key("parse"), Key("decode"), Key("encode"), Key("send")}));
}

TEST(CallMetadataTest, ACallWithoutAnIdGetsOne) {
  InProcessServer server;
  std::string first;
  for (const char* wrong : {"", "two words", "\x01"}) {
    grpc::ClientContext context;
    if (*wrong > ' ') context.AddMetadata("x-request-id", wrong);
    v1::ServerInfo info;
    ASSERT_TRUE(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
    const std::string id = TrailerOf(context, "x-request-id");
    EXPECT_THAT(id, MatchesRegex("[0-9a-f]{14}"));
    EXPECT_NE(id, first);
    first = id;
  }
  grpc::ClientContext twice;
  twice.AddMetadata("x-request-id", "a");
  twice.AddMetadata("x-request-id", "b");
  v1::ServerInfo info;
  ASSERT_TRUE(server.stub().GetServerInfo(&twice, v1::GetServerInfoRequest(), &info).ok());
  EXPECT_THAT(TrailerOf(twice, "x-request-id"), MatchesRegex("[0-9a-f]{14}"));
}

TEST(CallMetadataTest, TheLogKnowsCallsByTheirIds) {
  ::testing::internal::CaptureStderr();
  {
    InProcessServer server({"log.level=info"});
    const auto call = [&server](const std::string& id, const std::string& traceparent) {
      grpc::ClientContext context;
      context.AddMetadata("x-request-id", id);
      context.AddMetadata("traceparent", traceparent);
      v1::ServerInfo info;
      EXPECT_TRUE(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
    };
    call("traced", kTraceparent);
    call("not-traced", std::string(kTraceparent) + "-more");
    grpc::ClientContext context;
    context.AddMetadata("x-request-id", "stream");
    const auto stream = server.stub().ExecuteStream(&context);
    v1::ExecuteRequest request = LargeRequest();
    request.set_request_id(5);
    EXPECT_TRUE(stream->Write(request));
    v1::ExecuteResponse response;
    EXPECT_TRUE(stream->Read(&response));
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(R"("request_id":"traced","trace_id":"0af7651916cd43dd8448eb211c80319c",)"));
  EXPECT_THAT(log, HasSubstr(R"("request_id":"not-traced","peer")"));
  EXPECT_THAT(log, HasSubstr(R"("request_id":"stream/5")"));
  EXPECT_THAT(log, HasSubstr(R"("tenant":"default")"));
}

// Some clients write "for ever" like this. In nanoseconds it would be beyond 64 bits.
TEST(CallMetadataTest, DeadlinesOfCenturiesHaveNotPassed) {
  InProcessServer server;
  const v1::ExecuteRequest warm =
      WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  Http2Peer peer(server.target());
  uint32_t stream = 1;
  for (const char* timeout : {"2100000H", "99999999H"}) {
    peer.Send(Http2Peer::Call(stream, "/tensord.v1.Compute/Execute", warm.SerializeAsString(),
                              Http2Peer::Header("grpc-timeout", timeout)));
    stream += 2;
  }
  EXPECT_TRUE(WaitFor([&] { return server.executor().stats().completed == 2; }));
}

}  // namespace
}  // namespace tensord
