// Sessions and resident tensors: what unary calls do with handles.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/session_client.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using v1::ResultOption;

std::vector<float> Ones(size_t count) { return std::vector<float>(count, 1.0f); }

// Tells whether that much is kept, as soon as the server has let go of the last call's memory.
bool CpuKeeps(InProcessServer& server, int64_t bytes) {
  return WaitFor([&] { return server.parts().sessions->stats().devices["cpu:0"].bytes == bytes; });
}
int64_t TensorsOnCpu(InProcessServer& server) { return server.parts().sessions->stats().devices["cpu:0"].tensors; }

TEST(SessionTest, KeptResultsAreArgumentsLater) {
  InProcessServer server;
  SessionClient session(server);
  EXPECT_EQ(session.id().size(), 32u);
  ASSERT_EQ(session.Put("x", {1, 2, 3}), "OK");
  v1::ExecuteRequest request = session.Request(DoubleGraph());
  AddHandle(&request, "x");
  Keep(&request, "y");
  v1::ExecuteResponse response;
  ASSERT_EQ(session.Run(request, &response), "OK");
  EXPECT_EQ(response.results(0).handle(), "y");
  EXPECT_EQ(response.results(0).tensor().data(), "") << "kept: no data on the wire";
  EXPECT_THAT(response.results(0).tensor().shape(), ElementsAre(3));
  EXPECT_THAT(session.Get("y"), ElementsAre(2, 4, 6));
  EXPECT_THAT(session.Get("x"), ElementsAre(1, 2, 3));
  EXPECT_TRUE(CpuKeeps(server, 2 * server::kHandleBytes));
  EXPECT_EQ(TensorsOnCpu(server), 2);
  EXPECT_THAT(session.Delete({"x", "none", "y", "x"}), ElementsAre("none", "x"));
  EXPECT_TRUE(NothingIsLeft(server));
  EXPECT_EQ(session.Run(request), "HANDLE_UNKNOWN");
  EXPECT_EQ(session.Close(), "OK");
  EXPECT_EQ(session.Close(), "SESSION_UNKNOWN");
  EXPECT_EQ(session.Run(request), "SESSION_UNKNOWN");
}

TEST(SessionTest, EveryDelivery) {
  InProcessServer server;
  SessionClient session(server);
  const v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 2 } } }
    nodes { name: "a" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    nodes { name: "b" inputs: "a" inputs: "x" binary: BINARY_OP_ADD }
    nodes { name: "c" inputs: "b" inputs: "x" binary: BINARY_OP_ADD }
    nodes { name: "d" inputs: "c" inputs: "x" binary: BINARY_OP_ADD }
    nodes { name: "e" inputs: "d" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "a" value: "a" } outputs { name: "b" value: "b" } outputs { name: "c" value: "c" }
    outputs { name: "d" value: "d" } outputs { name: "e" value: "e" })");
  v1::ExecuteRequest request = session.Request(graph);
  *request.add_arguments()->mutable_tensor() = FloatTensor({1, 10}, {2});
  Keep(&request, "a", ResultOption::DELIVERY_KEEP);
  Keep(&request, "b", ResultOption::DELIVERY_BOTH);
  Keep(&request, "c", ResultOption::DELIVERY_DISCARD);
  Keep(&request, "d", ResultOption::DELIVERY_INLINE);
  v1::ExecuteResponse response;
  ASSERT_EQ(session.Run(request, &response), "OK");
  EXPECT_THAT(FloatsOf(response.results(0).tensor()), IsEmpty());
  EXPECT_THAT(FloatsOf(response.results(1).tensor()), ElementsAre(3, 30));
  EXPECT_THAT(FloatsOf(response.results(2).tensor()), IsEmpty());
  EXPECT_THAT(FloatsOf(response.results(3).tensor()), ElementsAre(5, 50));
  EXPECT_THAT(FloatsOf(response.results(4).tensor()), ElementsAre(6, 60));
  EXPECT_EQ(response.results(1).handle(), "b");
  EXPECT_EQ(response.results(3).handle(), "");
  EXPECT_THAT(session.Get("a"), ElementsAre(2, 20));
  EXPECT_THAT(session.Get("b"), ElementsAre(3, 30));
  EXPECT_THAT(session.Delete({"a", "b", "c", "d"}), ElementsAre("c", "d"));
}

TEST(SessionTest, ResultsThatAreArgumentsOrEachOther) {
  InProcessServer server;
  SessionClient session(server);
  ASSERT_EQ(session.Put("x", {1, 2, 3, 4}), "OK");
  // The argument itself, twice, a part of it, a constant and a part of that.
  v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 4 } } }
    nodes { name: "part" inputs: "x" slice { start_indices: 1 limit_indices: 3 strides: 1 } }
    nodes { name: "one" constant { value { dtype: DTYPE_F32 shape: 2 } } }
    outputs { name: "x" value: "x" } outputs { name: "again" value: "x" } outputs { name: "part" value: "part" }
    outputs { name: "one" value: "one" })");
  const float ones[] = {7, 8};
  graph.mutable_nodes(1)->mutable_constant()->mutable_value()->set_data(ones, sizeof(ones));
  v1::ExecuteRequest request = session.Request(graph);
  AddHandle(&request, "x");
  for (const char* handle : {"same", "again", "part", "one"}) Keep(&request, handle);
  ASSERT_EQ(session.Run(request), "OK");
  EXPECT_TRUE(CpuKeeps(server, 5 * server::kHandleBytes)) << "small as they are, by handle";
  // Memory that is written over may not be read by another.
  for (const char* handle : {"again", "one", "part", "x"}) {
    v1::ExecuteRequest over = session.Request(DoubleGraph());
    AddDonated(&over, handle);
    Keep(&over, handle);
    ASSERT_EQ(session.Run(over), "OK") << handle;
  }
  EXPECT_THAT(session.Get("same"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(session.Get("again"), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(session.Get("part"), ElementsAre(4, 6));
  EXPECT_THAT(session.Get("one"), ElementsAre(14, 16));
  v1::ExecuteRequest constant = session.Request(graph);
  AddHandle(&constant, "same");
  v1::ExecuteResponse response;
  ASSERT_EQ(session.Run(constant, &response), "OK");
  EXPECT_THAT(FloatsOf(response.results(3).tensor()), ElementsAre(7, 8)) << "the program's constant is as it was";
  session.Delete({"same", "again", "part", "one", "x"});
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(SessionTest, EveryOrder) {
  InProcessServer server;
  SessionClient session(server);
  const v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 2 } shape { size: 3 } } }
    nodes { name: "y" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "y" value: "y" } outputs { name: "x" value: "x" })");
  const std::vector<float> row_major = {0, 1, 2, 3, 4, 5}, column_major = {0, 3, 1, 4, 2, 5};
  for (const auto made_in : {v1::MEMORY_ORDER_COLUMN_MAJOR, v1::MEMORY_ORDER_ROW_MAJOR}) {
    const bool made_rows = made_in == v1::MEMORY_ORDER_ROW_MAJOR;
    for (const auto used_in : {v1::MEMORY_ORDER_COLUMN_MAJOR, v1::MEMORY_ORDER_ROW_MAJOR}) {
      for (const bool donated : {false, true}) {
        v1::ExecuteRequest make = session.Request(graph);
        make.mutable_options()->set_order(made_in);
        *make.add_arguments()->mutable_tensor() = FloatTensor(made_rows ? row_major : column_major, {2, 3});
        Keep(&make, "ignored", ResultOption::DELIVERY_DISCARD);
        Keep(&make, "x");
        ASSERT_EQ(session.Run(make), "OK");
        v1::ExecuteRequest use = session.Request(graph);
        use.mutable_options()->set_order(used_in);
        donated ? AddDonated(&use, "x") : AddHandle(&use, "x");
        v1::ExecuteResponse response;
        ASSERT_EQ(session.Run(use, &response), "OK");
        EXPECT_THAT(response.results(1).tensor().shape(), ElementsAre(2, 3));
        EXPECT_EQ(response.results(1).tensor().order(), used_in);
        EXPECT_EQ(FloatsOf(response.results(1).tensor()),
                  used_in == v1::MEMORY_ORDER_ROW_MAJOR ? row_major : column_major);
        EXPECT_EQ(session.Delete({"x"}).size(), donated ? 1u : 0u);
      }
    }
  }
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(SessionTest, ADonatedTensorIsReusedInPlace) {
  InProcessServer server({"sessions.tenant_bytes=4194304"});
  SessionClient session(server);
  // As much as the tenant may have: each step has room only in the place of the last one's tensor.
  ASSERT_EQ(session.Put("x", Ones(1 << 20)), "OK");
  const auto address = [&] {
    return (*(*server.parts().sessions->Find("default", session.id()))->Find("x")).buffer->address();
  };
  const void* const before = address();
  for (int i = 0; i < 5; ++i) {
    v1::ExecuteRequest step = session.Request(DoubleGraph());
    AddDonated(&step, "x");
    Keep(&step, "x");
    ASSERT_EQ(session.Run(step), "OK");
    EXPECT_TRUE(CpuKeeps(server, 4 << 20));
    EXPECT_EQ(TensorsOnCpu(server), 1);
    EXPECT_EQ(address(), before);
  }
  EXPECT_THAT(session.Get("x")[77], 32);
  v1::ExecuteRequest once_more = session.Request(DoubleGraph());
  AddHandle(&once_more, "x");
  Keep(&once_more, "y");
  EXPECT_EQ(session.Run(once_more), "LIMIT_EXCEEDED") << "not where it is kept as well";
  AddHandle(&once_more, "x");
  session.Delete({"x"});
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(SessionTest, WhatARefusedRequestWasGivenComesBack) {
  InProcessServer server({"cpu.executors=1", "cpu.queue_length=1"});
  SessionClient session(server);
  ASSERT_EQ(session.Put("x", Ones(16)), "OK");
  const auto donate = [&](const v1::Graph& graph) {
    v1::ExecuteRequest request = session.Request(graph);
    AddDonated(&request, "x");
    Keep(&request, "y");
    return request;
  };
  v1::ExecuteRequest wrong = donate(SmallAdd());
  EXPECT_EQ(session.Run(wrong), "ARGUMENT_COUNT");
  wrong.add_arguments()->set_handle("none");
  EXPECT_EQ(session.Run(wrong), "HANDLE_UNKNOWN");
  wrong = donate(GraphOf(R"(inputs { name: "x" type { dtype: DTYPE_F64 shape { size: 16 } } }
                            outputs { name: "x" value: "x" })"));
  EXPECT_EQ(session.Run(wrong), "ARGUMENT_MISMATCH");
  wrong = donate(LargeSum());
  Keep(&wrong, "z");
  EXPECT_EQ(session.Run(wrong), "ARGUMENT_COUNT") << "there is one output";
  wrong = donate(LargeSum());
  wrong.mutable_graph()->mutable_outputs(0)->set_value("none");
  EXPECT_EQ(session.Run(wrong), "VALUE_UNKNOWN");
  wrong.set_fingerprint(std::string(64, '0'));
  EXPECT_EQ(session.Run(wrong), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(session.Get("x"), Ones(16));
  {
    BlockedExecutor blocked(server);
    const v1::ExecuteRequest request = donate(LargeSum());
    grpc::ClientContext context;
    std::thread waiting([&] {
      v1::ExecuteResponse response;
      EXPECT_FALSE(server.stub().Execute(&context, request, &response).ok());
    });
    ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
    EXPECT_EQ(session.Run(request), "HANDLE_UNKNOWN") << "it is the waiting request's";
    context.TryCancel();
    waiting.join();
    // The client knows before the server does.
    EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_cancelled_total", "Execute") == 1; }));
    blocked.Release();
  }
  server.WaitUntilIdle();
  EXPECT_EQ(session.Get("x"), Ones(16)) << "cancelled before it ran";
  EXPECT_THAT(session.Delete({"y", "x"}), ElementsAre("y")) << "no handle stays reserved";
}

TEST(SessionTest, ARunThatFailedHasUsedUpWhatItWasGiven) {
  InProcessServer server;
  SessionClient session(server);
  ASSERT_EQ(session.Put("x", {0, 0, 0, 0}), "OK");
  v1::ExecuteRequest request = session.Request(GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 4 } } }
    nodes { name: "a" inputs: "x" reshape { shape { size: 2 } shape { size: 2 } } }
    nodes { name: "inverse" inputs: "a" extension { op { type_url: "type.googleapis.com/tensord.linalg.v1.Inverse" } } }
    outputs { name: "inverse" value: "inverse" })"));
  AddDonated(&request, "x");
  Keep(&request, "y");
  EXPECT_EQ(session.Run(request), "MATRIX_SINGULAR");
  EXPECT_THAT(session.Delete({"x", "y"}), ElementsAre("x", "y"));
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(SessionTest, HandlesAreRefusedByName) {
  InProcessServer server;
  SessionClient session(server);
  ASSERT_EQ(session.Put("x", {1}), "OK");
  EXPECT_EQ(session.Put("x", {1}), "HANDLE_DUPLICATE");
  EXPECT_EQ(session.Put("", {1}), "NAME_INVALID");
  EXPECT_EQ(session.Put("a\nb", {1}), "NAME_INVALID");
  EXPECT_EQ(session.Put(std::string(257, 'x'), {1}), "NAME_INVALID");
  v1::ExecuteRequest request = session.Request(DoubleGraph());
  AddHandle(&request, "x");
  request.clear_session();
  EXPECT_EQ(session.Run(request), "SESSION_UNKNOWN") << "handles need a session";
  request.set_session("nonsense");
  EXPECT_EQ(session.Run(request), "SESSION_UNKNOWN");
  request.set_session(session.id());
  request.add_results()->set_delivery(static_cast<ResultOption::Delivery>(77));
  EXPECT_EQ(session.Run(request), "UNSUPPORTED_REQUEST");
  request = session.Request(DoubleGraph());
  *request.add_arguments()->mutable_tensor() = FloatTensor({1}, {1});
  EXPECT_EQ(session.Run(request), "OK") << "a session without handles";
}

// The refusal's limit, its value and what was asked for.
std::string LimitOf(const grpc::Status& status) {
  const v1::ErrorDetail detail = DetailOf(status);
  if (detail.reason() != "LIMIT_EXCEEDED") return ReasonOf(status);
  return detail.limit() + " " + std::to_string(detail.limit_value()) + " < " + std::to_string(detail.actual_value());
}

TEST(SessionTest, EveryLimitNamesItself) {
  InProcessServer server({"sessions.count=1", "sessions.handles=2", "sessions.tenant_bytes=9000",
                          "sessions.device_bytes=10000", "sessions.max_lease_ms=5000"});
  SessionClient session(server);
  const auto run = [&](v1::ExecuteRequest request) {
    v1::ExecuteResponse response;
    return LimitOf(Execute(server.stub(), request, &response));
  };
  grpc::ClientContext context;
  v1::Session second;
  EXPECT_EQ(LimitOf(server.stub().OpenSession(&context, v1::OpenSessionRequest(), &second)), "sessions.count 1 < 2");
  v1::ExecuteRequest request = session.Request(DoubleGraph());
  *request.add_arguments()->mutable_tensor() = FloatTensor(Ones(2600), {2600});
  Keep(&request, "y");
  EXPECT_EQ(run(request), "sessions.device_bytes 10000 < 10400") << "the device's first";
  *request.mutable_arguments(0)->mutable_tensor() = FloatTensor(Ones(2400), {2400});
  EXPECT_EQ(run(request), "sessions.tenant_bytes 9000 < 9600");
  ASSERT_EQ(session.Put("a", {1}), "OK");
  ASSERT_EQ(session.Put("b", {1}), "OK");
  *request.mutable_arguments(0)->mutable_tensor() = FloatTensor({1}, {1});
  EXPECT_EQ(run(request), "sessions.handles 2 < 3");
  EXPECT_TRUE(CpuKeeps(server, 2 * server::kHandleBytes));
  v1::ServerInfo info;
  grpc::ClientContext asking;
  ASSERT_TRUE(server.stub().GetServerInfo(&asking, v1::GetServerInfoRequest(), &info).ok());
  EXPECT_THAT(info.DebugString(), HasSubstr("name: \"sessions.tenant_bytes\"\n  value: 9000"));
}

TEST(SessionTest, NoRequestNamesMoreThanAProgramCanHave) {
  InProcessServer server({"limits.graph_inputs=4", "limits.graph_outputs=5"});
  SessionClient session(server);
  const auto run = [&](v1::ExecuteRequest request) {
    v1::ExecuteResponse response;
    return LimitOf(Execute(server.stub(), request, &response));
  };
  v1::ExecuteRequest request = session.Request(DoubleGraph());
  for (int i = 0; i < 6; ++i) Keep(&request, "y" + std::to_string(i));
  EXPECT_EQ(run(request), "graph_outputs 5 < 6");
  request = session.Request(DoubleGraph());
  for (int i = 0; i < 5; ++i) AddHandle(&request, "x");
  EXPECT_EQ(run(request), "graph_inputs 4 < 5");
}

TEST(SessionTest, WhatIsDonatedInTheOtherOrderIsNotFreeWhileItsCopyLives) {
  const v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 40 } shape { size: 40 } } }
    nodes { name: "y" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "y" value: "y" })");
  // The tensor, its copy and the result: three times 6,400 bytes.
  for (const char* quota : {"19199", "19200"}) {
    InProcessServer server({std::string("sessions.tenant_bytes=") + quota});
    SessionClient session(server);
    v1::ExecuteRequest make = session.Request(graph);
    *make.add_arguments()->mutable_tensor() = FloatTensor(Ones(1600), {40, 40});
    make.mutable_options()->set_order(v1::MEMORY_ORDER_ROW_MAJOR);
    Keep(&make, "x");
    ASSERT_EQ(session.Run(make), "OK");
    v1::ExecuteRequest step = session.Request(graph);
    AddDonated(&step, "x");
    Keep(&step, "x");
    step.mutable_options()->set_order(v1::MEMORY_ORDER_COLUMN_MAJOR);
    EXPECT_EQ(session.Run(step), quota == std::string("19200") ? "OK" : "LIMIT_EXCEEDED");
    EXPECT_TRUE(CpuKeeps(server, 6400));
  }
}

TEST(SessionTest, ACopyInTheOtherOrderIsChargedWhileItIsNeeded) {
  InProcessServer server({"sessions.tenant_bytes=10000"});
  SessionClient session(server);
  const v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 40 } shape { size: 40 } } }
    nodes { name: "y" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "y" value: "y" })");
  v1::ExecuteRequest make = session.Request(graph);
  *make.add_arguments()->mutable_tensor() = FloatTensor(Ones(1600), {40, 40});
  make.mutable_options()->set_order(v1::MEMORY_ORDER_ROW_MAJOR);
  Keep(&make, "x");
  ASSERT_EQ(session.Run(make), "OK");
  v1::ExecuteRequest use = session.Request(graph);
  AddHandle(&use, "x");
  use.mutable_options()->set_order(v1::MEMORY_ORDER_ROW_MAJOR);
  EXPECT_EQ(session.Run(use), "OK") << "as it lies";
  use.mutable_options()->set_order(v1::MEMORY_ORDER_COLUMN_MAJOR);
  v1::ExecuteResponse response;
  EXPECT_EQ(LimitOf(Execute(server.stub(), use, &response)), "sessions.tenant_bytes 10000 < 12800");
  v1::GetTensorRequest get;
  get.set_session(session.id());
  get.set_handle("x");
  get.set_order(v1::MEMORY_ORDER_COLUMN_MAJOR);
  grpc::ClientContext context;
  const auto reader = server.stub().GetTensor(&context, get);
  v1::GetTensorResponse message;
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_EQ(LimitOf(reader->Finish()), "sessions.tenant_bytes 10000 < 12800");
  EXPECT_TRUE(CpuKeeps(server, 6400));
}

TEST(SessionTest, LeasesAreAsAskedForAndEnd) {
  InProcessServer server({"sessions.default_lease_ms=60000", "sessions.max_lease_ms=120000"});
  const auto lease = [&](int64_t seconds, int32_t nanos) {
    v1::OpenSessionRequest request;
    if (seconds != 0 || nanos != 0) {
      request.mutable_lease()->set_seconds(seconds);
      request.mutable_lease()->set_nanos(nanos);
    }
    v1::Session session;
    grpc::ClientContext context;
    const grpc::Status status = server.stub().OpenSession(&context, request, &session);
    return status.ok() ? std::to_string(session.lease().seconds()) : ReasonOf(status);
  };
  EXPECT_EQ(lease(0, 0), "60");
  EXPECT_EQ(lease(90, 0), "90");
  EXPECT_EQ(lease(int64_t{1} << 30, 0), "120");
  EXPECT_EQ(lease(1, -1), "MALFORMED_MESSAGE");
  EXPECT_EQ(lease(-1, 0), "MALFORMED_MESSAGE");
  EXPECT_EQ(lease(0, -5), "MALFORMED_MESSAGE");
  EXPECT_EQ(lease(0, 1000000), "0");
  EXPECT_TRUE(WaitFor([&] { return server.parts().sessions->stats().expired == 1; })) << "that of a millisecond";
  EXPECT_EQ(server.parts().sessions->stats().sessions, 3);
}

TEST(SessionTest, AClientThatDiesLeavesNothing) {
  InProcessServer server({"sessions.default_lease_ms=50", "cpu.executors=1"});
  SessionClient session(server);
  ASSERT_THAT(session.Put("x", Ones(16)), ::testing::AnyOf("OK", "SESSION_UNKNOWN"));
  {
    BlockedExecutor blocked(server);
    const auto other = server.Dial();
    const auto stub = v1::Compute::NewStub(other);
    v1::ExecuteRequest request = session.Request(LargeSum());
    *request.add_arguments()->mutable_tensor() = FloatTensor(Ones(16), {16});
    Keep(&request, "y");
    grpc::ClientContext context;
    std::thread waiting([&] {
      v1::ExecuteResponse response;
      EXPECT_FALSE(stub->Execute(&context, request, &response).ok());
    });
    // Either it waits in the queue, or its session's lease was over before.
    WaitFor([&] { return server.executor().stats().queued == 1 || server.parts().sessions->stats().sessions == 0; });
    context.TryCancel();
    waiting.join();
  }
  EXPECT_TRUE(WaitFor([&] { return server.parts().sessions->stats().sessions == 0; }));
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(SessionTest, ACallInProgressHoldsItsSession) {
  InProcessServer server({"sessions.default_lease_ms=500", "cpu.executors=1"});
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  BlockedExecutor blocked(server);
  std::string outcome;
  std::atomic<bool> refused{false};
  std::thread waiting;
  const auto is_queued = [&] { return server.executor().stats().queued == 1; };
  // Again where the machine took longer than the lease to send the request.
  while (!is_queued()) {
    if (waiting.joinable()) waiting.join();
    refused = false;
    const std::string id = SessionClient(server).id();
    waiting = std::thread([&, id] {
      v1::ExecuteRequest request = warm;
      request.set_session(id);
      Keep(&request, "y");
      v1::ExecuteResponse response;
      outcome = ReasonOf(Execute(server.stub(), request, &response));
      if (outcome == "SESSION_UNKNOWN") refused = true;
    });
    ASSERT_TRUE(WaitFor([&] { return is_queued() || refused; }));
    if (refused) waiting.join();
  }
  const int64_t expired = server.parts().sessions->stats().expired;
  SessionClient idle(server);  // ends while the other one is held
  EXPECT_TRUE(WaitFor([&] { return server.parts().sessions->stats().expired > expired; }));
  blocked.Release();
  waiting.join();
  EXPECT_EQ(outcome, "OK");
}

TEST(SessionTest, ManyClientsOpenRunDeleteAndExpireAtOnce) {
  InProcessServer server({"sessions.max_lease_ms=200", "sessions.count=1000000"});
  std::vector<std::thread> clients;
  std::atomic<int> succeeded{0};
  for (int c = 0; c < 6; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 12; ++i) {
        SessionClient session(server);
        for (const char* handle : {"a", "b"}) session.Put(handle, Ones(static_cast<size_t>(16 + c)));
        v1::ExecuteRequest request = session.Request(DoubleGraph());
        i % 2 == 0 ? AddHandle(&request, "a") : AddDonated(&request, "a");
        Keep(&request, "c", i % 3 == 0 ? ResultOption::DELIVERY_BOTH : ResultOption::DELIVERY_KEEP);
        if (session.Run(request) == "OK") ++succeeded;
        const std::vector<float> result = session.Get("c");
        EXPECT_TRUE(result.empty() || result == std::vector<float>(static_cast<size_t>(16 + c), 2.0f));
        if (i % 4 == 0) session.Close();
        server.parts().sessions->Describe();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(succeeded, 0);
  EXPECT_TRUE(WaitFor([&] { return server.parts().sessions->stats().sessions == 0; }));
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(SessionTest, WhoWaitsForATensorKeepsItsDeadline) {
  InProcessServer server({"compiler.threads=1"});
  SessionClient session(server);
  EXPECT_EQ(session.Put("one", {1}), "OK");
  v1::ExecuteRequest reads = session.Request(DoubleGraph());
  *reads.add_arguments()->mutable_tensor() = FloatTensor({1}, {1});
  EXPECT_EQ(session.Run(reads), "OK");  // compiles
  reads.clear_arguments();
  AddHandle(&reads, "later");

  BlockedCompiler blocked(server);
  v1::ExecuteRequest makes = session.Request(LargeSum());
  *makes.add_arguments()->mutable_tensor() = FloatTensor(std::vector<float>(16, 1), {16});
  Keep(&makes, "later");
  std::thread maker([&] { EXPECT_EQ(session.Run(makes), "OK"); });
  EXPECT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 1; }));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  v1::ExecuteResponse response;
  EXPECT_EQ(server.stub().Execute(&context, reads, &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().calls == 1; })) << "only the maker is left inside";
  blocked.Release();
  maker.join();
  EXPECT_EQ(session.Get("later").size(), 16u);
}

TEST(SessionTest, AClientThatVanishedMakesRoom) {
  InProcessServer server({"listen=127.0.0.1:0", "sessions.count=1"});
  const auto open = [&server] {
    const auto stub = v1::Compute::NewStub(
        grpc::CreateCustomChannel(server.daemon().grpc_addresses().at(1), grpc::InsecureChannelCredentials(), [] {
          grpc::ChannelArguments own;
          own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
          return own;
        }()));
    grpc::ClientContext context;
    v1::Session session;
    return ReasonOf(stub->OpenSession(&context, v1::OpenSessionRequest(), &session));
  };
  EXPECT_EQ(open(), "OK");  // and gone, with its connection
  EXPECT_EQ(open(), "LIMIT_EXCEEDED") << "it may come back";
  EXPECT_TRUE(WaitFor([&] { return open() == "OK"; }));
}

}  // namespace
}  // namespace tensord
