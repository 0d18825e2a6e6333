// Long requests are read apart from all others: while no thread is free to read them everybody else is answered.
#include <functional>
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

// Returns a graph of more than 64 KiB.
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

// Though it brings its graph.
TEST(ReadingTurnTest, ATinyRunWhoseProgramIsInMemoryWaitsForNoTurn) {
  InProcessServer server;
  const v1::ExecuteRequest request = RequestOf(
      SmallAdd(), {FloatTensor(std::vector<float>(16, 1), {16}), FloatTensor(std::vector<float>(16, 1), {16})});
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(), request, &response).ok());
  BlockedReaders blocked(server);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Execute(server.stub(), request, &response).ok());
}

TEST(ReadingTurnTest, WhatIsLongWaitsAndOthersAreAnswered) {
  InProcessServer server;
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
  EXPECT_TRUE(WaitFor([&] { return Queued(server) == static_cast<int64_t>(calls.size()); }));
  ExpectOthersAreAnswered(server, small);
  blocked.Release();
  for (std::future<std::string>& call : calls) EXPECT_EQ(call.get(), "OK");
}

// A few KiB, whose sizes take as long to read as some hundred KiB of others: n + 1 + 1 …
v1::Graph GraphOfManySizes() {
  v1::Graph graph = GraphOf(R"(outputs { name: "y" value: "x_0" })");
  for (int i = 0; i < 5; ++i) {
    v1::GraphInput* const input = graph.add_inputs();
    input->set_name("x_" + std::to_string(i));
    input->mutable_type()->set_dtype(v1::DTYPE_F32);
    v1::DimExpr size;
    size.set_symbol("n");
    for (int k = 0; k < 20; ++k) {
      v1::DimExpr more;
      more.mutable_binary()->set_kind(v1::BinaryDimExpr::KIND_ADD);
      *more.mutable_binary()->mutable_lhs() = size;
      more.mutable_binary()->mutable_rhs()->set_size(1);
      size = more;
    }
    *input->mutable_type()->add_shape() = size;
    input->mutable_type()->add_shape()->set_symbol("n");
  }
  return graph;
}

TEST(ReadingTurnTest, WhatHasManySizesIsLongHoweverShort) {
  InProcessServer server;
  const std::vector<v1::Tensor> ones(2, FloatTensor(std::vector<float>(16, 1), {16}));
  const v1::ExecuteRequest small = WarmRequest(server.stub(), SmallAdd(), ones);
  v1::CompileRequest compile;
  *compile.mutable_graph() = GraphOfManySizes();
  EXPECT_LT(compile.ByteSizeLong(), 4096u);
  const v1::ExecuteRequest execute =
      RequestOf(compile.graph(), std::vector<v1::Tensor>(5, FloatTensor(std::vector<float>(21, 1), {21, 1})));
  v1::DifferentiateRequest differentiate;
  *differentiate.mutable_graph() = compile.graph();
  BlockedReaders blocked(server);
  std::vector<std::future<std::string>> calls;
  calls.push_back(Call<v1::CompileRequest, v1::CompileResponse>(server, &v1::Compute::Stub::Compile, compile));
  calls.push_back(Call<v1::ExecuteRequest, v1::ExecuteResponse>(server, &v1::Compute::Stub::Execute, execute));
  std::future<std::string> gradient = Call<v1::DifferentiateRequest, v1::DifferentiateResponse>(
      server, &v1::Compute::Stub::Differentiate, differentiate);
  grpc::ClientContext context;
  const auto stream = server.stub().ExecuteStream(&context);
  ASSERT_TRUE(stream->Write(execute));
  EXPECT_TRUE(WaitFor([&] { return Queued(server) == 4; }));
  ExpectOthersAreAnswered(server, small);
  blocked.Release();
  for (std::future<std::string>& call : calls) EXPECT_EQ(call.get(), "OK");
  gradient.wait();
  v1::ExecuteResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_FALSE(response.has_error()) << response.error().message();
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
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
  EXPECT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().bytes == 0; }))
      << "its memory is free, though its turn has not come";
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
  SessionClient session(server);
  EXPECT_EQ(session.Close(), "OK") << "it frees, and waits for nobody";
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

// A call that waits for its turn: returns when it has ended.
using Waiter = std::function<void(InProcessServer& server, grpc::ClientContext* context)>;

void CompileInTurn(InProcessServer& server, grpc::ClientContext* context) {
  v1::CompileRequest request;
  *request.mutable_graph() = LongGraph();
  v1::CompileResponse response;
  server.stub().Compile(context, request, &response);
}

void ExecuteInTurn(InProcessServer& server, grpc::ClientContext* context) {
  v1::ExecuteResponse response;
  server.stub().Execute(context, LongRequest(), &response);
}

void StreamInTurn(InProcessServer& server, grpc::ClientContext* context) {
  const auto stream = server.stub().ExecuteStream(context);
  stream->Write(LongRequest());
  v1::ExecuteResponse response;
  stream->Read(&response);
  stream->Finish();
}

TEST(ReadingTurnTest, WhoLeavesFreesThePlace) {
  for (const Waiter& waiter : {Waiter(&CompileInTurn), Waiter(&ExecuteInTurn), Waiter(&StreamInTurn)}) {
    InProcessServer server({"receive.queue_length=1"});
    BlockedReaders blocked(server);
    for (int i = 0; i < 2; ++i) {
      grpc::ClientContext context;
      const auto call = std::async(std::launch::async, [&] { waiter(server, &context); });
      ASSERT_TRUE(WaitFor([&] { return Queued(server) == 1; }));
      EXPECT_GT(server.parts().gate->snapshot().bytes, 64 * 1024) << "it has its memory while it waits";
      context.TryCancel();
      call.wait();
      EXPECT_TRUE(WaitFor([&] { return Queued(server) == 0 && server.parts().gate->snapshot().bytes == 0; }));
    }
  }
}

// 200 x 200 numbers of a session, whose transpose is what they are in the other order.
void KeepSquare(SessionClient& session) {
  const v1::Graph graph = GraphOf(R"(
      inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 200 } shape { size: 200 } } }
      nodes { name: "y" inputs: "x" unary: UNARY_OP_NEGATE }
      outputs { name: "y" value: "y" })");
  v1::ExecuteRequest request = session.Request(graph);
  *request.add_arguments()->mutable_tensor() = FloatTensor(std::vector<float>(40'000, 1), {200, 200});
  Keep(&request, "square");
  ASSERT_EQ(session.Run(request), "OK");
}

TEST(ReadingTurnTest, ADownloadThatLeavesFreesThePlace) {
  InProcessServer server({"receive.queue_length=1"});
  SessionClient session(server);
  KeepSquare(session);
  BlockedReaders blocked(server);
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::GetTensorRequest request;
    request.set_session(session.id());
    request.set_handle("square");
    request.set_order(v1::MEMORY_ORDER_ROW_MAJOR);
    const auto stream = server.stub().GetTensor(&context, request);
    ASSERT_TRUE(WaitFor([&] { return Queued(server) == 1; }));
    context.TryCancel();
    stream->Finish();
    EXPECT_TRUE(WaitFor([&] { return Queued(server) == 0; }));
  }
}

// A request without room does not wait with its bytes: it is refused then and there, as its own.
TEST(ReadingTurnTest, ARequestOfAStreamWithoutRoomIsRefusedAtOnce) {
  InProcessServer server({"limits.in_flight_bytes=120000"});
  BlockedReaders blocked(server);
  grpc::ClientContext waiting_context;
  const auto waiting = server.stub().ExecuteStream(&waiting_context);
  ASSERT_TRUE(waiting->Write(LongRequest()));
  ASSERT_TRUE(WaitFor([&] { return Queued(server) == 1; }));
  grpc::ClientContext context;
  const auto refused = server.stub().ExecuteStream(&context);
  v1::ExecuteRequest request = LongRequest();
  request.set_request_id(7);
  v1::ExecuteResponse response;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(refused->Write(request));
    ASSERT_TRUE(refused->Read(&response));
    EXPECT_EQ(response.request_id(), 7u);
    EXPECT_EQ(response.error().detail().limit(), "in_flight_bytes");
  }
  refused->WritesDone();
  EXPECT_TRUE(refused->Finish().ok());
  blocked.Release();
  waiting->WritesDone();
  ASSERT_TRUE(waiting->Read(&response));
  EXPECT_FALSE(response.has_error()) << response.error().message();
  EXPECT_TRUE(waiting->Finish().ok());
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
  EXPECT_TRUE(WaitFor([&] { return Queued(server) == 0; }));
  blocked.Release();
  server.WaitUntilIdle();
  EXPECT_EQ(server.Metric("tensord_compile_requests_total", "miss"), 0);
}

v1::ExecuteRequest SquareRequest(v1::MemoryOrder order) {
  v1::ExecuteRequest request = RequestOf(GraphOf(R"(
      inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 200 } shape { size: 200 } } }
      nodes { name: "y" inputs: "x" unary: UNARY_OP_NEGATE }
      outputs { name: "y" value: "y" })"),
                                         {FloatTensor(std::vector<float>(40'000, 1), {200, 200})});
  request.mutable_arguments(0)->mutable_tensor()->set_order(order);
  return request;
}

// Copies after a compilation are made in a turn too: the first copy, into a buffer, and the one in the program's order.
TEST(ReadingTurnTest, ArgumentsThatWaitedForACompilationAreCopiedInTurn) {
  for (const v1::MemoryOrder order : {v1::MEMORY_ORDER_COLUMN_MAJOR, v1::MEMORY_ORDER_ROW_MAJOR}) {
    InProcessServer server({"compiler.threads=1"});
    const std::vector<v1::Tensor> ones(2, FloatTensor(std::vector<float>(16, 1), {16}));
    const v1::ExecuteRequest small = WarmRequest(server.stub(), SmallAdd(), ones);
    BlockedCompiler compiler(server);
    std::future<std::string> call =
        Call<v1::ExecuteRequest, v1::ExecuteResponse>(server, &v1::Compute::Stub::Execute, SquareRequest(order));
    EXPECT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 1; }));
    BlockedReaders readers(server);
    compiler.Release();
    EXPECT_TRUE(WaitFor([&] { return Queued(server) == 1; }));
    ExpectOthersAreAnswered(server, small);
    readers.Release();
    EXPECT_EQ(call.get(), "OK");
  }
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
