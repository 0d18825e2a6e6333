// ExecuteStream: many requests in flight, handles that are used before they are there, and every way in which it ends.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/raw_stream.h"
#include "tests/e2e/server/session_client.h"

namespace tensord {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Ones(size_t count) { return std::vector<float>(count, 1.0f); }

// A client's end of the stream.
class RequestStream {
 public:
  explicit RequestStream(v1::Compute::Stub& stub) : stream_(stub.ExecuteStream(&context_)) {}
  ~RequestStream() {
    if (!finished_) {
      context_.TryCancel();
      stream_->Finish();
    }
  }

  bool Send(v1::ExecuteRequest request, uint64_t id) {
    request.set_request_id(id);
    return stream_->Write(request);
  }
  // The next response; its id 0 at the end.
  v1::ExecuteResponse Receive() {
    v1::ExecuteResponse response;
    if (!stream_->Read(&response)) response.Clear();
    return response;
  }
  // So many responses, by id.
  std::map<uint64_t, v1::ExecuteResponse> Receive(int count) {
    std::map<uint64_t, v1::ExecuteResponse> responses;
    for (int i = 0; i < count; ++i) {
      v1::ExecuteResponse response = Receive();
      responses[response.request_id()] = std::move(response);
    }
    return responses;
  }
  void Done() { stream_->WritesDone(); }
  grpc::Status Finish() {
    finished_ = true;
    return stream_->Finish();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::ExecuteRequest, v1::ExecuteResponse>> stream_;
  bool finished_ = false;
};

std::string ReasonIn(const v1::ExecuteResponse& response) {
  return response.has_error() ? response.error().detail().reason() : "OK";
}

v1::ExecuteRequest SumOfOnes() { return RequestOf(LargeSum(), {FloatTensor(Ones(16), {16})}); }

// With more to read in it.
v1::ExecuteRequest SlowToCompile() {
  v1::ExecuteRequest request = SumOfOnes();
  const v1::Node constant = request.graph().nodes(0);
  for (int i = 0; i < 300; ++i) {
    v1::Node* node = request.mutable_graph()->add_nodes();
    *node = constant;
    node->set_name("constant" + std::to_string(i));
  }
  return request;
}

TEST(ExecuteStreamTest, AnswersEachRequestAndEndsWell) {
  InProcessServer server;
  RequestStream pipeline(server.stub());
  for (uint64_t id = 1; id <= 40; ++id) {
    ASSERT_TRUE(pipeline.Send(
        id % 2 == 0 ? SumOfOnes() : RequestOf(SmallAdd(), {FloatTensor(Ones(16), {16}), FloatTensor(Ones(16), {16})}),
        id));
  }
  pipeline.Done();
  const auto responses = pipeline.Receive(40);
  ASSERT_EQ(responses.size(), 40u);
  for (const auto& [id, response] : responses) {
    ASSERT_EQ(ReasonIn(response), "OK");
    EXPECT_THAT(FloatsOf(response.results(0).tensor()), Each(id % 2 == 0 ? 4096 : 2));
    EXPECT_EQ(response.stats().device(), "cpu:0");
  }
  EXPECT_EQ(pipeline.Receive().request_id(), 0u);
  EXPECT_TRUE(pipeline.Finish().ok());
  server.WaitUntilIdle();
  EXPECT_EQ(server.Metric("tensord_rpc_started_total", "ExecuteStream"), 1);
  EXPECT_EQ(server.Metric("tensord_execute_total", "ok"), 40);
}

TEST(ExecuteStreamTest, AnEmptyStreamEndsWell) {
  InProcessServer server;
  RequestStream pipeline(server.stub());
  pipeline.Done();
  EXPECT_EQ(pipeline.Receive().request_id(), 0u);
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST(ExecuteStreamTest, AnErrorStaysWithItsRequest) {
  InProcessServer server;
  RequestStream pipeline(server.stub());
  v1::ExecuteRequest wrong = SumOfOnes();
  wrong.set_fingerprint(std::string(64, '0'));
  pipeline.Send(wrong, 1);
  wrong.clear_fingerprint();
  pipeline.Send(wrong, 2);
  pipeline.Send(SumOfOnes(), 3);
  const auto responses = pipeline.Receive(3);
  EXPECT_EQ(ReasonIn(responses.at(1)), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(responses.at(1).error().code(), static_cast<int>(grpc::StatusCode::FAILED_PRECONDITION));
  EXPECT_THAT(responses.at(1).error().message(), HasSubstr("fingerprint"));
  EXPECT_EQ(ReasonIn(responses.at(2)), "MALFORMED_MESSAGE");
  EXPECT_EQ(ReasonIn(responses.at(3)), "OK");
  pipeline.Done();
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST(ExecuteStreamTest, IdsInFlightDiffer) {
  InProcessServer server({"cpu.executors=1"});
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  RequestStream pipeline(server.stub());
  BlockedExecutor blocked(server);
  pipeline.Send(warm, 7);
  pipeline.Send(warm, 7);
  v1::ExecuteResponse response = pipeline.Receive();
  EXPECT_EQ(response.request_id(), 7u);
  EXPECT_EQ(ReasonIn(response), "REQUEST_ID_DUPLICATE");
  blocked.Release();
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "OK");
  pipeline.Send(warm, 7);
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "OK") << "free again when it is answered";
  pipeline.Done();
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST(ExecuteStreamTest, DependentsNeedNoRoundTrip) {
  InProcessServer server({"cpu.executors=1"});
  SessionClient session(server);
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {});
  RequestStream pipeline(server.stub());
  {
    BlockedExecutor blocked(server);  // nothing is computed before all have arrived
    v1::ExecuteRequest first = warm;
    first.set_session(session.id());
    *first.add_arguments()->mutable_tensor() = FloatTensor(Ones(16), {16});
    Keep(&first, "a");
    pipeline.Send(first, 1);
    // A tiny program, one that goes to the executor, and a donation of what both read.
    v1::ExecuteRequest tiny = session.Request(SmallAdd());
    AddHandle(&tiny, "a");
    AddHandle(&tiny, "a");
    Keep(&tiny, "b", v1::ResultOption::DELIVERY_BOTH);
    pipeline.Send(tiny, 2);
    v1::ExecuteRequest large = warm;
    large.set_session(session.id());
    AddDonated(&large, "a");
    Keep(&large, "a", v1::ResultOption::DELIVERY_BOTH);
    pipeline.Send(large, 3);
    v1::ExecuteRequest last = session.Request(SmallAdd());
    AddHandle(&last, "a");
    AddDonated(&last, "b");
    pipeline.Send(last, 4);
    v1::ExecuteRequest late = session.Request(SmallAdd());
    AddHandle(&late, "b");
    AddHandle(&late, "b");
    pipeline.Send(late, 5);
    const v1::ExecuteResponse refused = pipeline.Receive();
    EXPECT_EQ(refused.request_id(), 5u) << "what was donated before is gone, though nothing ran yet";
    EXPECT_EQ(ReasonIn(refused), "HANDLE_UNKNOWN");
  }
  const auto responses = pipeline.Receive(4);
  for (const auto& [id, response] : responses) ASSERT_EQ(ReasonIn(response), "OK") << response.error().message();
  EXPECT_THAT(FloatsOf(responses.at(2).results(0).tensor()), Each(8192));
  EXPECT_THAT(FloatsOf(responses.at(3).results(0).tensor()), Each(4096.0f * 4096));
  EXPECT_THAT(FloatsOf(responses.at(4).results(0).tensor()), Each(4096.0f * 4096 + 8192));
  EXPECT_THAT(session.Delete({"a", "b"}), ElementsAre("b"));
  pipeline.Done();
  EXPECT_TRUE(pipeline.Finish().ok());
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(ExecuteStreamTest, ALongChainOfDependents) {
  InProcessServer server({"cpu.executors=1", "sessions.stream_requests=5000"});
  SessionClient session(server);
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  const v1::ExecuteRequest add = WarmRequest(server.stub(), SmallAdd(), {});
  constexpr int kLength = 2000;  // each step on the stack of the one before would need too much of it
  RequestStream pipeline(server.stub());
  {
    BlockedExecutor blocked(server);
    v1::ExecuteRequest first = warm;
    first.set_session(session.id());
    Keep(&first, "x");
    pipeline.Send(first, 1);
    for (int i = 2; i <= kLength; ++i) {
      v1::ExecuteRequest next = add;
      next.set_session(session.id());
      AddDonated(&next, "x");
      *next.add_arguments()->mutable_tensor() = FloatTensor(Ones(16), {16});
      Keep(&next, "x");
      ASSERT_TRUE(pipeline.Send(next, static_cast<uint64_t>(i)));
    }
  }
  for (const auto& [id, response] : pipeline.Receive(kLength)) ASSERT_EQ(ReasonIn(response), "OK");
  EXPECT_THAT(session.Get("x"), Each(4096 + kLength - 1));
  pipeline.Done();
  EXPECT_TRUE(pipeline.Finish().ok());
  EXPECT_EQ(session.Close(), "OK");
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(ExecuteStreamTest, FailuresPoisonWhatDependsOnThem) {
  InProcessServer server;
  SessionClient session(server);
  RequestStream pipeline(server.stub());
  v1::ExecuteRequest failing = session.Request(DoubleGraph());
  AddHandle(&failing, "none");
  Keep(&failing, "a");
  pipeline.Send(failing, 1);
  v1::ExecuteRequest second = session.Request(DoubleGraph());
  AddHandle(&second, "a");
  Keep(&second, "b");
  pipeline.Send(second, 2);
  v1::ExecuteRequest third = session.Request(DoubleGraph());
  AddHandle(&third, "b");
  pipeline.Send(third, 3);
  const auto responses = pipeline.Receive(3);
  EXPECT_EQ(ReasonIn(responses.at(1)), "HANDLE_UNKNOWN");
  EXPECT_EQ(ReasonIn(responses.at(2)), "HANDLE_POISONED");
  EXPECT_EQ(ReasonIn(responses.at(3)), "HANDLE_POISONED");
  EXPECT_THAT(responses.at(3).error().message(), HasSubstr("HANDLE_UNKNOWN: the session has no tensor \"none\""));
  EXPECT_EQ(session.Put("a", {1}), "HANDLE_POISONED");
  session.Delete({"a", "b"});
  EXPECT_EQ(session.Put("a", {1}), "OK");
  pipeline.Done();
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST(ExecuteStreamTest, NoMoreAreReadThanMayBeInFlight) {
  InProcessServer server({"cpu.executors=1", "sessions.stream_requests=3"});
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  RequestStream pipeline(server.stub());
  {
    BlockedExecutor blocked(server);
    for (uint64_t id = 1; id <= 10; ++id) ASSERT_TRUE(pipeline.Send(warm, id));
    ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued == 3; }));
    // A call that comes after the requests, and is answered, shows that the server had time to read them.
    v1::ServerInfo info;
    grpc::ClientContext context;
    ASSERT_TRUE(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
    EXPECT_EQ(server.executor().stats().queued, 3);
  }
  pipeline.Done();
  EXPECT_EQ(pipeline.Receive(10).size(), 10u);
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST(ExecuteStreamTest, NoMoreBytesAreReadThanMayBeInFlight) {
  InProcessServer server({"cpu.executors=1", "sessions.stream_bytes=100"});
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  RequestStream pipeline(server.stub());
  {
    BlockedExecutor blocked(server);
    for (uint64_t id = 1; id <= 4; ++id) ASSERT_TRUE(pipeline.Send(warm, id));
    ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; })) << "one is always read";
    // An earlier compilation counts until its call is over, which its client need not have seen.
    EXPECT_TRUE(
        WaitFor([&] { return server.parts().gate->snapshot().bytes < 2 * static_cast<int64_t>(warm.ByteSizeLong()); }));
  }
  pipeline.Done();
  EXPECT_EQ(pipeline.Receive(4).size(), 4u);
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST(ExecuteStreamTest, ACancelledStreamCancelsWhatIsInFlight) {
  InProcessServer server({"cpu.executors=1"});
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  SessionClient session(server);
  RequestStream pipeline(server.stub());
  {
    BlockedExecutor blocked(server);
    v1::ExecuteRequest first = warm;
    first.set_session(session.id());
    Keep(&first, "a");
    pipeline.Send(first, 1);
    v1::ExecuteRequest second = session.Request(SmallAdd());
    AddHandle(&second, "a");
    AddHandle(&second, "a");
    Keep(&second, "b");
    pipeline.Send(second, 2);
    ASSERT_TRUE(WaitFor([&] { return server.parts().sessions->Describe().at(0).counts.handles == 2; }));
    pipeline.Cancel();
    EXPECT_EQ(pipeline.Finish().error_code(), grpc::StatusCode::CANCELLED);
    EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_cancelled_total", "ExecuteStream") == 1; }));
  }
  server.WaitUntilIdle();
  EXPECT_EQ(server.executor().stats().completed, 1) << "only what blocked the executor";
  EXPECT_EQ(session.Put("c", {1}), "OK");
  EXPECT_EQ(session.Close(), "OK");
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(ExecuteStreamTest, ACancelThatMeetsARequestLosesNothing) {
  InProcessServer server;
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  const v1::ExecuteRequest cold = SlowToCompile();
  for (int i = 0; i < 1000; ++i) {
    RequestStream pipeline(server.stub());
    pipeline.Send(i % 2 == 0 ? warm : cold, 1);
    if (i % 4 < 2) std::this_thread::yield();
    pipeline.Cancel();
    pipeline.Finish();
  }
  server.WaitUntilIdle();
  EXPECT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().bytes == 0; }));
}

TEST(ExecuteStreamTest, AStepThatIsRefusedPoisonsTheState) {
  InProcessServer server({"cpu.executors=1", "cpu.queue_length=1"});
  SessionClient session(server);
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  ASSERT_EQ(session.Put("x", Ones(16)), "OK");
  RequestStream pipeline(server.stub());
  BlockedExecutor blocked(server);
  pipeline.Send(warm, 1);
  ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
  v1::ExecuteRequest step = session.Request(LargeSum());
  AddDonated(&step, "x");
  Keep(&step, "x");
  pipeline.Send(step, 2);
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "QUEUE_FULL");
  blocked.Release();
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "OK");
  pipeline.Send(step, 3);  // sent before the refusal was known, or after: it is the same
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "HANDLE_POISONED");
  pipeline.Send(step, 4);
  pipeline.Done();
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "HANDLE_POISONED");
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST(ExecuteStreamTest, ARequestThatIsAloneMayBeAsLargeAsAMessage) {
  InProcessServer server({"limits.in_flight_bytes=1024"});
  RequestStream pipeline(server.stub());
  pipeline.Send(SlowToCompile(), 1);
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "OK");
  pipeline.Done();
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST(ExecuteStreamTest, AMessageBeyondTheLimitEndsItAndSaysWhich) {
  const int64_t bytes = static_cast<int64_t>(SlowToCompile().ByteSizeLong());
  InProcessServer server({absl::StrCat("limits.message_bytes=", bytes * 2 / 3)});
  RequestStream pipeline(server.stub());
  pipeline.Send(SumOfOnes(), 1);
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "OK");
  pipeline.Send(SlowToCompile(), 2);
  EXPECT_EQ(pipeline.Receive().request_id(), 0u);
  const grpc::Status end = pipeline.Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(end).limit(), "message_bytes");
  EXPECT_EQ(DetailOf(end).limit_value(), bytes * 2 / 3);
  EXPECT_GE(DetailOf(end).actual_value(), bytes);
  server.WaitUntilIdle();
  EXPECT_EQ(server.Metric("tensord_rpc_handled_total", "RESOURCE_EXHAUSTED"), 1);
}

// gRPC refuses what is far beyond, and the server knows no more than that its client got another end than its own.
TEST(ExecuteStreamTest, AMessageFarBeyondTheLimitEndsItForTheRecordToo) {
  InProcessServer server({absl::StrCat("limits.message_bytes=", SlowToCompile().ByteSizeLong() / 3)});
  RequestStream pipeline(server.stub());
  pipeline.Send(SumOfOnes(), 1);
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "OK");
  pipeline.Send(SlowToCompile(), 2);
  EXPECT_EQ(pipeline.Receive().request_id(), 0u);
  EXPECT_EQ(pipeline.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  server.WaitUntilIdle();
  EXPECT_EQ(server.Metric("tensord_rpc_handled_total", "CANCELLED"), 1);
  EXPECT_EQ(server.Metric("tensord_rpc_handled_total", "OK"), -1) << "no other call was made";
}

TEST(ExecuteStreamTest, BytesThatAreNoRequestEndIt) {
  InProcessServer server;
  RawStream stream(server.Dial(), "tensord.v1.Compute/ExecuteStream");
  v1::ExecuteRequest request = SumOfOnes();
  request.set_request_id(5);
  ASSERT_TRUE(stream.Write(request.SerializeAsString()));
  std::string bytes;
  ASSERT_TRUE(stream.Read(&bytes));
  v1::ExecuteResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  EXPECT_EQ(response.request_id(), 5u);
  ASSERT_TRUE(stream.Write("\xff\xff\xff"));
  EXPECT_FALSE(stream.Read(&bytes));
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf(status).reason(), "MALFORMED_MESSAGE");
}

TEST(ExecuteStreamTest, AnIdleStreamDoesNotHoldUpTheDrain) {
  InProcessServer server;
  RequestStream pipeline(server.stub());
  pipeline.Send(SumOfOnes(), 1);
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "OK");
  server.RequestStop();
  EXPECT_EQ(pipeline.Receive().request_id(), 0u);
  const grpc::Status status = pipeline.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(DetailOf(status).reason(), "SERVER_DRAINING");
  server.WaitUntilStopped();
}

TEST(ExecuteStreamTest, ADrainAnswersWhatIsInFlight) {
  InProcessServer server({"cpu.executors=1"});
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  RequestStream pipeline(server.stub());
  BlockedExecutor blocked(server);
  pipeline.Send(warm, 1);
  ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
  server.RequestStop();
  ASSERT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().state == server::ServingState::kDraining; }));
  pipeline.Send(warm, 2);  // refused where the server was waiting for it already, otherwise not read any more
  RequestStream late(server.stub());
  EXPECT_EQ(DetailOf(late.Finish()).reason(), "SERVER_DRAINING") << "a stream that begins now";
  blocked.Release();
  std::map<uint64_t, std::string> outcomes;
  for (v1::ExecuteResponse response = pipeline.Receive(); response.request_id() != 0; response = pipeline.Receive()) {
    EXPECT_TRUE(outcomes.emplace(response.request_id(), ReasonIn(response)).second);
  }
  EXPECT_EQ(outcomes[1], "OK");
  outcomes.emplace(2, "SERVER_DRAINING");
  EXPECT_EQ(outcomes[2], "SERVER_DRAINING");
  EXPECT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(DetailOf(pipeline.Finish()).reason(), "SERVER_DRAINING");
  server.WaitUntilStopped();
}

TEST(ExecuteStreamTest, ManyStreamsOfOneSessionAtOnce) {
  InProcessServer server;
  SessionClient session(server);
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      const auto stub = v1::Compute::NewStub(server.Dial());
      for (int round = 0; round < 3; ++round) {
        RequestStream pipeline(*stub);
        const std::string name = "x" + std::to_string(c);
        v1::ExecuteRequest first = session.Request(LargeSum());
        *first.add_arguments()->mutable_tensor() = FloatTensor(Ones(16), {16});
        Keep(&first, name);
        pipeline.Send(first, 1);
        for (uint64_t id = 2; id <= 20; ++id) {
          v1::ExecuteRequest next = session.Request(SmallAdd());
          id % 2 == 0 ? AddDonated(&next, name) : AddHandle(&next, name);
          *next.add_arguments()->mutable_tensor() = FloatTensor(Ones(16), {16});
          if (id % 2 == 0) Keep(&next, name);
          pipeline.Send(next, id);
        }
        if (round == 1) continue;  // the client is gone in the middle
        for (const auto& [id, response] : pipeline.Receive(20)) {
          // The remains of a stream that broke off are poisoned, or there.
          EXPECT_THAT(ReasonIn(response), round == 0 ? ::testing::Matcher<std::string>("OK")
                                                     : AnyOf("OK", "HANDLE_POISONED", "HANDLE_DUPLICATE"));
        }
        session.Delete({name});
        pipeline.Done();
        EXPECT_TRUE(pipeline.Finish().ok());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  server.WaitUntilIdle();
  EXPECT_EQ(session.Close(), "OK");
  EXPECT_TRUE(NothingIsLeft(server));
}

TEST(ExecuteStreamTest, WhatTheTransportTakesForAResponseIsAStageOfItsRequest) {
  InProcessServer server;
  const v1::ExecuteRequest warm = WarmRequest(server.stub(), LargeSum(), {FloatTensor(Ones(16), {16})});
  RequestStream pipeline(server.stub());
  pipeline.Send(warm, 1);
  EXPECT_EQ(ReasonIn(pipeline.Receive()), "OK");
  const auto sent = [&server] {
    uint64_t count = 0;
    for (const prometheus::MetricFamily& family : server.parts().metrics->registry()->Collect()) {
      if (family.name != "tensord_execute_stage_seconds") continue;
      for (const prometheus::ClientMetric& metric : family.metric) {
        for (const prometheus::ClientMetric::Label& label : metric.label) {
          if (label.value == "send") count += metric.histogram.sample_count;
        }
      }
    }
    return count;
  };
  EXPECT_TRUE(WaitFor([&] { return sent() == 1; }));
}

}  // namespace
}  // namespace tensord
