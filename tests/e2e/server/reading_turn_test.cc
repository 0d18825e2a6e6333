// Long requests are read apart from all others: while no thread is free to read them everybody else is answered.
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"

namespace tensord {
namespace {

int64_t Queued(InProcessServer& server) { return server.parts().readers->stats().queued; }

// Of more than 64 KiB.
v1::Graph LongGraph() {
  v1::Graph graph = GraphOf(R"(inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 16 } } })");
  std::string last = "x";
  for (int i = 0; i < 2500; ++i) {
    v1::Node* const node = graph.add_nodes();
    node->set_name("node_" + std::to_string(i));
    node->add_inputs(last);
    node->add_inputs("x");
    node->set_binary(v1::BINARY_OP_ADD);
    last = node->name();
  }
  graph.add_outputs()->set_name("y");
  graph.mutable_outputs(0)->set_value(last);
  return graph;
}

v1::ExecuteRequest LongRequest() {
  constexpr int64_t kSize = 20'000;
  return RequestOf(DoubleGraph(), {FloatTensor(std::vector<float>(kSize, 1), {kSize})});
}

template <typename Request, typename Response>
std::future<std::string> Call(InProcessServer& server,
                              grpc::Status (v1::Compute::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                        Response*),
                              const Request& request) {
  return std::async(std::launch::async, [&server, method, request] {
    grpc::ClientContext context;
    Response response;
    return ReasonOf((server.stub().*method)(&context, request, &response));
  });
}

std::future<std::string> CompileLong(InProcessServer& server) {
  v1::CompileRequest request;
  *request.mutable_graph() = LongGraph();
  return Call<v1::CompileRequest, v1::CompileResponse>(server, &v1::Compute::Stub::Compile, request);
}

void ExpectOthersAreAnswered(InProcessServer& server, const v1::ExecuteRequest& small) {
  EXPECT_TRUE(CallRaw(server.Dial(), "grpc.health.v1.Health/Check", "").status.ok());
  EXPECT_TRUE(CallRaw(server.Dial(), "tensord.v1.Compute/GetServerInfo", "").status.ok());
  v1::ExecuteResponse response;
  EXPECT_TRUE(Execute(server.stub(), small, &response).ok());
}

TEST(ReadingTurnTest, WhatIsLongWaitsAndOthersAreAnswered) {
  InProcessServer server;
  SessionClient session(server);
  const std::vector<v1::Tensor> ones(2, FloatTensor(std::vector<float>(16, 1), {16}));
  const v1::ExecuteRequest small = WarmRequest(server.stub(), SmallAdd(), ones);
  BlockedReaders blocked(server);
  std::vector<std::future<std::string>> calls;
  calls.push_back(CompileLong(server));
  v1::ExplainRequest explain;
  explain.set_fingerprint(small.fingerprint());
  calls.push_back(Call<v1::ExplainRequest, v1::ExplainResponse>(server, &v1::Compute::Stub::Explain, explain));
  v1::GetProgramRequest get;
  get.set_fingerprint(small.fingerprint());
  calls.push_back(Call<v1::GetProgramRequest, v1::Program>(server, &v1::Compute::Stub::GetProgram, get));
  calls.push_back(Call<v1::ExecuteRequest, v1::ExecuteResponse>(server, &v1::Compute::Stub::Execute, LongRequest()));
  v1::CloseSessionRequest close;
  close.set_session(session.id());
  calls.push_back(
      Call<v1::CloseSessionRequest, v1::CloseSessionResponse>(server, &v1::Compute::Stub::CloseSession, close));
  EXPECT_TRUE(WaitFor([&] { return Queued(server) == static_cast<int64_t>(calls.size()); }));
  ExpectOthersAreAnswered(server, small);
  blocked.Release();
  for (std::future<std::string>& call : calls) EXPECT_EQ(call.get(), "OK");
}

TEST(ReadingTurnTest, AnotherTenantsTurnComesAtOnce) {
  InProcessServer server;
  BlockedReaders blocked(server);
  std::promise<void> done;
  EXPECT_TRUE(server.parts().readers->Submit("another", [&done] { done.set_value(); }).taken());
  done.get_future().wait();
}

TEST(ReadingTurnTest, WhoIsGoneIsNotReadAnyMore) {
  InProcessServer server;
  BlockedReaders blocked(server);
  v1::CompileRequest request;
  *request.mutable_graph() = LongGraph();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  v1::CompileResponse response;
  EXPECT_EQ(server.stub().Compile(&context, request, &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  server.WaitUntilIdle();
  EXPECT_EQ(server.parts().gate->snapshot().bytes, 0) << "its memory is free, though its turn has not come";
  EXPECT_EQ(server.Metric("tensord_compile_requests_total", "miss"), 0);
}

TEST(ReadingTurnTest, TheQueueIsBounded) {
  InProcessServer server({"receive.queue_length=1"});
  BlockedReaders blocked(server);
  std::future<std::string> waits = CompileLong(server);
  EXPECT_TRUE(WaitFor([&] { return Queued(server) == 1; }));
  v1::ExecuteResponse response;
  const grpc::Status refused = Execute(server.stub(), LongRequest(), &response);
  EXPECT_EQ(DetailOf(refused).reason(), "QUEUE_FULL");
  EXPECT_EQ(DetailOf(refused).limit(), "receive.queue_length");
  // A stream is read no further until there is a place.
  grpc::ClientContext context;
  const auto stream = server.stub().ExecuteStream(&context);
  v1::ExecuteRequest request = LongRequest();
  request.set_request_id(7);
  ASSERT_TRUE(stream->Write(request));
  EXPECT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().calls >= 2; }));
  blocked.Release();
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.request_id(), 7u);
  EXPECT_FALSE(response.has_error()) << response.error().message();
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(waits.get(), "OK");
}

// Handles mean what they meant when the request arrived, whoever reads it.
TEST(ReadingTurnTest, AStreamKeepsItsOrder) {
  InProcessServer server;
  SessionClient session(server);
  BlockedReaders blocked(server);
  grpc::ClientContext context;
  const auto stream = server.stub().ExecuteStream(&context);
  v1::ExecuteRequest first = session.Request(DoubleGraph());
  *first.add_arguments() = LongRequest().arguments(0);
  Keep(&first, "x");
  first.set_request_id(1);
  v1::ExecuteRequest second = session.Request(DoubleGraph());
  AddHandle(&second, "x");
  second.set_request_id(2);
  ASSERT_TRUE(stream->Write(first));
  ASSERT_TRUE(stream->Write(second));
  EXPECT_TRUE(WaitFor([&] { return Queued(server) == 1; }));
  blocked.Release();
  for (int i = 0; i < 2; ++i) {
    v1::ExecuteResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_FALSE(response.has_error()) << response.error().message();
    if (response.request_id() == 2) {
      EXPECT_EQ(FloatsOf(response.results(0).tensor())[0], 4);
    }
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(ReadingTurnTest, AStreamThatIsCancelledIsNotReadAnyMore) {
  InProcessServer server;
  BlockedReaders blocked(server);
  {
    grpc::ClientContext context;
    const auto stream = server.stub().ExecuteStream(&context);
    ASSERT_TRUE(stream->Write(LongRequest()));
    EXPECT_TRUE(WaitFor([&] { return Queued(server) == 1; }));
    context.TryCancel();
    stream->Finish();
  }
  blocked.Release();
  server.WaitUntilIdle();
  EXPECT_EQ(server.Metric("tensord_compile_requests_total", "miss"), 0);
}

TEST(ReadingTurnTest, OperatorsNeverWaitForThem) {
  const TemporaryFolder folder;
  InProcessServer server({"receive.queue_length=1", "admin.listen=unix:" + folder.path() + "/admin"});
  BlockedReaders blocked(server);
  std::future<std::string> waits = CompileLong(server);
  EXPECT_TRUE(WaitFor([&] { return Queued(server) == 1; }));
  const auto admin =
      v1::Admin::NewStub(grpc::CreateChannel("unix:" + folder.path() + "/admin", grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::ListSessionsResponse response;
  EXPECT_TRUE(admin->ListSessions(&context, v1::ListSessionsRequest(), &response).ok());
  blocked.Release();
  EXPECT_EQ(waits.get(), "OK");
}

}  // namespace
}  // namespace tensord
