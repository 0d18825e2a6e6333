// Running programs: results, orders, deadlines, cancellation, queues and limits.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

std::vector<float> Counting(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

v1::Graph Doubled(const std::string& shape) {
  return GraphOf("inputs { name: \"x\" type { dtype: DTYPE_F32 " + shape + R"( } }
    nodes { name: "y" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "y" value: "y" } outputs { name: "x" value: "x" })");
}

TEST(ExecuteTest, ByGraphAndByFingerprint) {
  InProcessServer server;
  const std::vector<v1::Tensor> arguments = {FloatTensor(Counting(16), {16}),
                                             FloatTensor(std::vector<float>(16, 1), {16})};
  v1::ExecuteRequest request = RequestOf(SmallAdd(), arguments);
  request.set_request_id(42);
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(), request, &response).ok());
  EXPECT_EQ(response.request_id(), 42u);
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(FloatsOf(response.results(0).tensor())[15], 16);
  EXPECT_EQ(response.stats().device(), "cpu:0");
  EXPECT_TRUE(response.stats().has_compile_time());
  EXPECT_GT(response.stats().peak_bytes(), 0);
  EXPECT_EQ(response.stats().segments_size(), 0);

  request = WarmRequest(server.stub(), SmallAdd(), arguments);
  request.set_profile(true);
  ASSERT_TRUE(Execute(server.stub(), request, &response).ok());
  EXPECT_FALSE(response.stats().has_compile_time());
  ASSERT_EQ(response.stats().segments_size(), 1);
  EXPECT_EQ(response.stats().segments(0).backend(), "cpu");
  EXPECT_THAT(response.stats().segments(0).nodes(), ElementsAre("sum"));
}

TEST(ExecuteTest, AProfileNamesTheNodesOfEveryKernel) {
  const v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 64 } shape { size: 64 } } }
    nodes { name: "scores" inputs: "x" inputs: "x"
            dot_general { lhs_contracting_dimensions: 1 rhs_contracting_dimensions: 0 } }
    nodes { name: "gate" inputs: "scores" unary: UNARY_OP_TANH }
    nodes { name: "gated" inputs: "gate" inputs: "x" binary: BINARY_OP_MULTIPLY }
    nodes { name: "shifted" inputs: "gated" inputs: "scores" binary: BINARY_OP_ADD }
    nodes { name: "again" inputs: "shifted" inputs: "x"
            dot_general { lhs_contracting_dimensions: 1 rhs_contracting_dimensions: 0 } }
    outputs { name: "y" value: "again" })");
  for (const char* pass : {"", "fuse", "form_sessions"}) {
    InProcessServer server;
    v1::ExecuteRequest request = RequestOf(graph, {FloatTensor(std::vector<float>(64 * 64, 0.25f), {64, 64})});
    if (*pass != '\0') request.mutable_options()->add_disabled_passes(pass);
    request.set_profile(true);
    v1::ExecuteResponse response;
    ASSERT_TRUE(Execute(server.stub(), request, &response).ok()) << pass;
    std::vector<std::string> nodes;
    absl::Duration end = absl::ZeroDuration(), total = absl::ZeroDuration();
    const auto duration_of = [](const google::protobuf::Duration& d) {
      return absl::Seconds(d.seconds()) + absl::Nanoseconds(d.nanos());
    };
    for (const v1::SegmentProfile& segment : response.stats().segments()) {
      EXPECT_EQ(segment.backend(), "cpu");
      nodes.insert(nodes.end(), segment.nodes().begin(), segment.nodes().end());
      EXPECT_GE(duration_of(segment.start()), end);
      end = duration_of(segment.start()) + duration_of(segment.duration());
      total += duration_of(segment.duration());
    }
    EXPECT_THAT(nodes, IsSupersetOf({"scores", "gate", "gated", "shifted", "again"})) << pass;
    EXPECT_EQ(nodes.front(), "scores");
    EXPECT_EQ(nodes.back(), "again");
    EXPECT_LE(end, duration_of(response.stats().run_time()));
    EXPECT_LE(total, duration_of(response.stats().run_time()));
  }
}

TEST(ExecuteTest, OnAnExecutor) {
  InProcessServer server;
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(), RequestOf(LargeSum(2), {FloatTensor(Counting(16), {16})}), &response).ok());
  EXPECT_EQ(FloatsOf(response.results(0).tensor())[3], 2 * 3 * 4096);
  EXPECT_EQ(server.executor().stats().completed, 1);
}

TEST(ExecuteTest, EveryOrderOfEverything) {
  InProcessServer server;
  const std::string shape = "shape { size: 2 } shape { size: 3 }";
  const v1::Graph graph = GraphOf("inputs { name: \"x\" type { dtype: DTYPE_F32 " + shape + R"( } }
    nodes { name: "y" inputs: "x" transpose { permutation: 1 permutation: 0 } }
    outputs { name: "y" value: "y" })");
  const std::vector<float> row_major = {0, 1, 2, 3, 4, 5};     // x[i][j] = 3 i + j
  const std::vector<float> column_major = {0, 3, 1, 4, 2, 5};  // the same tensor
  for (const auto program_order :
       {v1::MEMORY_ORDER_UNSPECIFIED, v1::MEMORY_ORDER_COLUMN_MAJOR, v1::MEMORY_ORDER_ROW_MAJOR}) {
    for (const auto order : {v1::MEMORY_ORDER_UNSPECIFIED, v1::MEMORY_ORDER_COLUMN_MAJOR, v1::MEMORY_ORDER_ROW_MAJOR}) {
      const bool program_rows = program_order == v1::MEMORY_ORDER_ROW_MAJOR;
      const bool rows = order == v1::MEMORY_ORDER_UNSPECIFIED ? program_rows : order == v1::MEMORY_ORDER_ROW_MAJOR;
      v1::Tensor x = FloatTensor(rows ? row_major : column_major, {2, 3});
      x.set_order(order);
      v1::ExecuteRequest request = RequestOf(graph, {x});
      request.mutable_options()->set_order(program_order);
      v1::ExecuteResponse response;
      ASSERT_TRUE(Execute(server.stub(), request, &response).ok());
      const v1::Tensor& y = response.results(0).tensor();
      EXPECT_THAT(y.shape(), ElementsAre(3, 2));
      EXPECT_EQ(y.order(), program_rows ? v1::MEMORY_ORDER_ROW_MAJOR : v1::MEMORY_ORDER_COLUMN_MAJOR);
      // The transposed tensor has the other order's bytes.
      EXPECT_EQ(FloatsOf(y), program_rows ? column_major : row_major) << program_order << " " << order;
    }
  }
}

TEST(ExecuteTest, SymbolicSizes) {
  InProcessServer server;
  const v1::Graph graph = Doubled("shape { symbol: \"n\" }");
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), graph, {});
  for (const int64_t size : {3, 0, 50000}) {
    v1::ExecuteRequest request = warm;
    *request.add_arguments()->mutable_tensor() = FloatTensor(Counting(static_cast<size_t>(size)), {size});
    v1::ExecuteResponse response;
    ASSERT_TRUE(Execute(server.stub(), request, &response).ok());
    EXPECT_THAT(response.results(0).tensor().shape(), ElementsAre(size));
    EXPECT_EQ(FloatsOf(response.results(1).tensor()), Counting(static_cast<size_t>(size)));
  }
  EXPECT_EQ(server.parts().cache->stats().compiled, 1);
}

TEST(ExecuteTest, EmptyTensorsAndScalars) {
  InProcessServer server;
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(),
                      RequestOf(Doubled("shape { size: 0 } shape { size: 7 }"), {FloatTensor({}, {0, 7})}), &response)
                  .ok());
  EXPECT_THAT(response.results(0).tensor().shape(), ElementsAre(0, 7));
  EXPECT_EQ(response.results(0).tensor().data(), "");
  ASSERT_TRUE(Execute(server.stub(), RequestOf(Doubled(""), {FloatTensor({4}, {})}), &response).ok());
  EXPECT_THAT(FloatsOf(response.results(0).tensor()), ElementsAre(8));
}

TEST(ExecuteTest, DiscardedResultsComeWithoutData) {
  InProcessServer server;
  v1::ExecuteRequest request = RequestOf(Doubled("shape { size: 4 }"), {FloatTensor(Counting(4), {4})});
  request.add_results()->set_delivery(v1::ResultOption::DELIVERY_DISCARD);
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(), request, &response).ok());
  EXPECT_THAT(response.results(0).tensor().shape(), ElementsAre(4));
  EXPECT_EQ(response.results(0).tensor().data(), "");
  EXPECT_EQ(FloatsOf(response.results(1).tensor()), Counting(4)) << "what has no option is returned";
  request.add_results();
  request.add_results();
  EXPECT_EQ(DetailOf(Execute(server.stub(), request, &response)).reason(), "ARGUMENT_COUNT");
}

TEST(ExecuteTest, MegabytesBothWays) {
  InProcessServer server;
  const int64_t size = int64_t{4} << 20;
  v1::ExecuteResponse response;
  const v1::ExecuteRequest request = RequestOf(
      Doubled("shape { size: 4194304 }"), {FloatTensor(std::vector<float>(static_cast<size_t>(size), 1.5f), {size})});
  ASSERT_TRUE(Execute(server.stub(), request, &response).ok());
  const std::vector<float> doubled = FloatsOf(response.results(0).tensor());
  EXPECT_EQ(std::count(doubled.begin(), doubled.end(), 3.0f), size);  // a matcher takes seconds for as many
}

TEST(ExecuteTest, ManyClientsAtOnce) {
  InProcessServer server;
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&server, c] {
      const auto stub = v1::Compute::NewStub(server.Dial());
      for (int i = 0; i < 10; ++i) {
        const float scale = static_cast<float>(i % 3 + 1);
        v1::ExecuteResponse response;
        const grpc::Status status = Execute(
            *stub, RequestOf(LargeSum(scale), {FloatTensor(std::vector<float>(16, static_cast<float>(c)), {16})}),
            &response);
        ASSERT_TRUE(status.ok()) << status.error_message();
        EXPECT_THAT(FloatsOf(response.results(0).tensor()), Each(scale * static_cast<float>(c) * 4096));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(server.parts().cache->stats().compiled, 3);
}

class QueueTest : public ::testing::Test {
 protected:
  explicit QueueTest()
      : server_({"cpu.executors=1", "cpu.queue_length=1", "limits.in_flight_bytes=4096",
                 "limits.default_deadline_ms=3600000"}) {
    warm_ = WarmRequest(server_.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  }
  bool WaitUntilQueued() {
    return WaitFor([this] { return server_.executor().stats().queued == 1; });
  }

  InProcessServer server_;
  v1::ExecuteRequest warm_;
};

TEST_F(QueueTest, AFullQueueRefuses) {
  BlockedExecutor blocked(server_);
  std::thread waiting([this] {
    v1::ExecuteResponse response;
    EXPECT_TRUE(Execute(server_.stub(), warm_, &response).ok());
  });
  EXPECT_TRUE(WaitUntilQueued());
  v1::ExecuteResponse response;
  const grpc::Status status = Execute(server_.stub(), warm_, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(status).reason(), "QUEUE_FULL");
  blocked.Release();
  waiting.join();
  // A call is counted when it is done, which may be after its client has the answer.
  EXPECT_TRUE(WaitFor([this] { return server_.Metric("tensord_execute_total", "rejected") == 1; }));
}

TEST_F(QueueTest, ACallThatIsCancelledInTheQueueIsNotRun) {
  BlockedExecutor blocked(server_);
  grpc::ClientContext context;
  std::thread waiting([&] {
    v1::ExecuteResponse response;
    EXPECT_EQ(server_.stub().Execute(&context, warm_, &response).error_code(), grpc::StatusCode::CANCELLED);
  });
  EXPECT_TRUE(WaitUntilQueued());
  context.TryCancel();
  waiting.join();
  EXPECT_TRUE(WaitFor([this] { return server_.Metric("tensord_rpc_cancelled_total", "Execute") == 1; }));
  blocked.Release();
  server_.WaitUntilIdle();
  EXPECT_EQ(server_.executor().stats().failed, 1);
  EXPECT_TRUE(WaitFor([this] { return server_.Metric("tensord_execute_total", "cancelled") == 1; }));
}

TEST_F(QueueTest, ACallWhoseDeadlinePassesInTheQueueIsNotRun) {
  BlockedExecutor blocked(server_);
  // Longer where the machine is so slow that the call does not reach the queue in time: one that comes to the server
  // after its client has left it would run once the executor is free.
  std::atomic<bool> queued{false};
  for (absl::Duration time = absl::Milliseconds(300); !queued; time *= 2) {
    std::atomic<bool> over{false};
    std::thread client([&] {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + time));
      v1::ExecuteResponse response;
      EXPECT_EQ(server_.stub().Execute(&context, warm_, &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
      over = true;
    });
    while (!over && !queued) {
      queued = server_.executor().stats().queued == 1;
      std::this_thread::yield();
    }
    client.join();
  }
  // The server counts the time from when the call came, so its deadline is a little later than the client's; the
  // executor is busy all the while.
  server_.WaitUntilIdle();
  blocked.Release();
  server_.WaitUntilIdle();
  EXPECT_EQ(server_.executor().stats().completed, 1) << "only what blocked the executor";
}

TEST_F(QueueTest, RequestsInProgressAreBoundedInBytes) {
  BlockedExecutor blocked(server_);
  std::thread waiting([this] {
    v1::ExecuteResponse response;
    EXPECT_TRUE(Execute(server_.stub(), warm_, &response).ok());
  });
  EXPECT_TRUE(WaitUntilQueued());
  v1::ExecuteRequest large = warm_;
  large.mutable_arguments(0)->mutable_tensor()->mutable_data()->append(5000, '\0');
  v1::ExecuteResponse response;
  const grpc::Status status = Execute(server_.stub(), large, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(status).limit(), "in_flight_bytes");
  EXPECT_EQ(DetailOf(status).limit_value(), 4096);
  blocked.Release();
  waiting.join();
}

TEST(DeadlineTest, ACallWithoutOneGetsTheDefault) {
  InProcessServer server({"cpu.executors=1", "limits.default_deadline_ms=1"});
  const v1::ExecuteRequest warm =
      WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  BlockedExecutor blocked(server);
  v1::ExecuteResponse response;
  const grpc::Status status = Execute(server.stub(), warm, &response);  // answered while every executor is busy
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(DetailOf(status).reason(), "DEADLINE_EXCEEDED");
}

TEST(LimitTest, AMessagePastTheLimit) {
  InProcessServer server({"limits.message_bytes=65536"});
  const auto send = [&server](int64_t floats) {
    v1::ExecuteResponse response;
    const v1::Graph graph = Doubled(absl::StrCat("shape { size: ", floats, " }"));
    return Execute(server.stub(), RequestOf(graph, {FloatTensor(Counting(static_cast<size_t>(floats)), {floats})}),
                   &response);
  };
  const grpc::Status beyond = send(20'000);
  EXPECT_EQ(beyond.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(beyond).limit(), "message_bytes");
  EXPECT_EQ(DetailOf(beyond).limit_value(), 65536);
  EXPECT_GT(DetailOf(beyond).actual_value(), 80'000);
  EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_handled_total", "RESOURCE_EXHAUSTED") == 1; }))
      << "it is counted";
  // Twice as much is gRPC's to refuse, which knows no detail.
  const grpc::Status far_beyond = send(100'000);
  EXPECT_EQ(far_beyond.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(far_beyond).limit(), "");
  EXPECT_TRUE(send(10'000).ok());
}

TEST(ExecuteTest, WhatCouldNotBeSentIsNotRun) {
  InProcessServer server;
  v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { symbol: "n" } } }
    nodes { name: "y" inputs: "x" broadcast_in_dim {
      shape { symbol: "n" } shape { size: 16777216 } broadcast_dimensions: 0 } })");
  for (int i = 0; i < 200; ++i) {
    v1::GraphOutput* output = graph.add_outputs();
    output->set_name(absl::StrCat("y", i));
    output->set_value("y");
  }
  const v1::ExecuteRequest request = WarmRequest(server.stub(), graph, {FloatTensor({1}, {1})});
  const int64_t completed = server.executor().stats().completed + server.executor().stats().failed;
  v1::ExecuteResponse response;
  const v1::ErrorDetail detail = DetailOf(Execute(server.stub(), request, &response));
  EXPECT_EQ(detail.reason(), "LIMIT_EXCEEDED");
  EXPECT_EQ(detail.limit(), "response_bytes");
  EXPECT_EQ(detail.actual_value(), int64_t{200} * 4 * 16777216);
  EXPECT_EQ(server.executor().stats().completed + server.executor().stats().failed, completed);
  v1::ExecuteRequest discards = request;
  for (int i = 0; i < 200; ++i) discards.add_results()->set_delivery(v1::ResultOption::DELIVERY_DISCARD);
  EXPECT_TRUE(Execute(server.stub(), discards, &response).ok()) << "what is not sent counts nothing";
}

}  // namespace
}  // namespace tensord
