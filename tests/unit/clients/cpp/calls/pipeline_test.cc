// Pipelines and servers that are none.
#include "tensord/pipeline.h"

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;

class PipelineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Pipeline> Open(ConnectOptions options = {}) {
    options.target = server_.target();
    const auto client = Client::Connect(std::move(options));
    EXPECT_TRUE(client.ok()) << client.status();
    return (*client)->OpenPipeline({.session = "s"});
  }
  // Answers each request as the function says, until it is to end.
  void Serve(std::function<bool(const v1::ExecuteRequest&, v1::ExecuteResponse*)> answer) {
    server_.execute_stream = [answer = std::move(answer)](FakeServer::ExecuteStreamEnd* stream) {
      v1::ExecuteRequest request;
      while (stream->Read(&request)) {
        v1::ExecuteResponse response;
        if (!answer(request, &response)) return grpc::Status::OK;
        stream->Write(response);
      }
      return grpc::Status::OK;
    };
  }

  FakeServer server_;
};

TEST_F(PipelineTest, SendsWhatTheCallSays) {
  std::vector<v1::ExecuteRequest> requests;
  Serve([&requests](const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
    requests.push_back(request);
    response->set_request_id(request.request_id());
    return true;
  });
  const auto pipeline = Open({.metadata = {{"authorization", "Bearer x"}}});
  v1::Graph graph;
  graph.set_name("g");
  ASSERT_TRUE(pipeline
                  ->Submit({.fingerprint = "f",
                            .arguments = {Argument::Donated("a"), HostTensor::Scalar(1.0f)},
                            .results = {ResultPlan::Both("b"), ResultPlan::Discard()},
                            .options = {.device = "cpu", .priority = 3, .profile = true}})
                  .ok());
  ASSERT_TRUE(pipeline->Submit({.graph = &graph, .session = "other", .options = {.device = "cpu"}}).ok());
  ASSERT_TRUE(pipeline->Finish().ok());
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_NE(requests[0].request_id(), requests[1].request_id());
  EXPECT_EQ(requests[0].fingerprint(), "f");
  EXPECT_EQ(requests[0].arguments(0).donated_handle(), "a");
  EXPECT_EQ(requests[0].arguments(1).tensor().data().size(), 4u);
  EXPECT_EQ(requests[0].results(0).delivery(), v1::ResultOption::DELIVERY_BOTH);
  EXPECT_EQ(requests[0].results(0).handle(), "b");
  EXPECT_EQ(requests[0].results(1).delivery(), v1::ResultOption::DELIVERY_DISCARD);
  EXPECT_EQ(requests[0].session(), "s");
  EXPECT_EQ(requests[0].priority(), 3);
  EXPECT_TRUE(requests[0].profile());
  EXPECT_FALSE(requests[0].has_options());
  EXPECT_EQ(requests[1].graph().name(), "g");
  EXPECT_EQ(requests[1].options().device(), "cpu");
  EXPECT_EQ(requests[1].session(), "other");
  EXPECT_THAT(server_.metadata, ::testing::Contains(Pair("authorization", "Bearer x")));
}

TEST_F(PipelineTest, AnAnswerToNoCallEndsIt) {
  Serve([](const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
    response->set_request_id(request.request_id() + 100);
    return true;
  });
  const auto pipeline = Open();
  auto pending = pipeline->Submit({.fingerprint = "f"});
  ASSERT_TRUE(pending.ok());
  EXPECT_EQ(pending->Wait().status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(pending->Wait().status().message()), HasSubstr("answered a call that it had not"));
  EXPECT_EQ(pipeline->Finish().code(), absl::StatusCode::kInternal);
}

TEST_F(PipelineTest, ABadResultFailsItsCallAlone) {
  Serve([](const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
    response->set_request_id(request.request_id());
    v1::Tensor* tensor = response->add_results()->mutable_tensor();
    tensor->set_dtype(v1::DTYPE_F32);
    tensor->set_data(request.fingerprint());
    return true;
  });
  const auto pipeline = Open();
  auto bad = pipeline->Submit({.fingerprint = "short"});
  auto good = pipeline->Submit({.fingerprint = "four"});
  ASSERT_TRUE(bad.ok() && good.ok());
  EXPECT_EQ(bad->Wait().status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(good->Wait().ok());
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(PipelineTest, AStreamThatEndsWithoutAnAnswerFailsWhatIsLeft) {
  Serve([](const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
    response->set_request_id(request.request_id());
    return request.fingerprint() != "last";
  });
  const auto pipeline = Open();
  auto first = pipeline->Submit({.fingerprint = "f"});
  auto last = pipeline->Submit({.fingerprint = "last"});
  ASSERT_TRUE(first.ok() && last.ok());
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_EQ(last->Wait().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(last->Wait().status().message()), HasSubstr("1 calls unanswered: the server ended"));
  EXPECT_EQ(pipeline->Submit({.fingerprint = "f"}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pipeline->Finish().code(), absl::StatusCode::kUnavailable);
}

TEST_F(PipelineTest, CallbacksAreCalledOnceWithTheAnswer) {
  std::promise<void> submitted;
  Serve([waiting = submitted.get_future().share()](const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
    waiting.wait();
    response->set_request_id(request.request_id());
    if (request.fingerprint() == "bad") {
      response->mutable_error()->set_code(grpc::StatusCode::INVALID_ARGUMENT);
      response->mutable_error()->set_message("no");
    }
    return true;
  });
  const auto pipeline = Open();
  std::vector<std::string> seen;
  const auto note = [&seen](const std::string& name) {
    return [&seen, name](const absl::StatusOr<ExecuteAnswer>& answer) {
      seen.push_back(name + " " + absl::StatusCodeToString(answer.status().code()));
    };
  };
  absl::StatusOr<PendingAnswer> kept = pipeline->Submit({.fingerprint = "good"});
  ASSERT_TRUE(kept.ok()) << kept.status();
  kept->Then(note("first"));
  kept->Then(note("second"));
  {
    absl::StatusOr<PendingAnswer> dropped = pipeline->Submit({.fingerprint = "bad"});
    ASSERT_TRUE(dropped.ok()) << dropped.status();
    dropped->Then(note("dropped"));
  }
  submitted.set_value();
  const absl::Status finished = pipeline->Finish();
  EXPECT_TRUE(finished.ok()) << "the callback has seen the failure: " << finished;
  EXPECT_THAT(seen, ::testing::ElementsAre("first OK", "second OK", "dropped INVALID_ARGUMENT"));
  kept->Then(note("late"));
  EXPECT_EQ(seen.back(), "late OK") << "at once, since the answer is there";
  EXPECT_TRUE(kept->Wait().ok());
}

TEST_F(PipelineTest, ALateCallbackWaitsItsTurn) {
  Serve([](const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
    response->set_request_id(request.request_id());
    return true;
  });
  const auto pipeline = Open();
  absl::StatusOr<PendingAnswer> answer = pipeline->Submit({.fingerprint = "f"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  answer->WaitUntil(absl::InfiniteFuture());
  std::promise<void> entered, leave;
  std::vector<int> order;
  std::thread first([&] {
    answer->Then([&](const absl::StatusOr<ExecuteAnswer>&) {
      entered.set_value();
      leave.get_future().wait();
      order.push_back(1);
    });
  });
  entered.get_future().wait();
  answer->Then([&order](const absl::StatusOr<ExecuteAnswer>&) { order.push_back(2); });
  EXPECT_TRUE(order.empty());
  leave.set_value();
  first.join();
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2));
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(PipelineTest, CallbacksLearnOfTheEndOfTheStream) {
  Serve([](const v1::ExecuteRequest&, v1::ExecuteResponse*) { return false; });
  const auto pipeline = Open();
  std::promise<absl::Status> ended;
  {
    absl::StatusOr<PendingAnswer> answer = pipeline->Submit({.fingerprint = "f"});
    ASSERT_TRUE(answer.ok()) << answer.status();
    answer->Then([&ended](const absl::StatusOr<ExecuteAnswer>& none) { ended.set_value(none.status()); });
  }
  EXPECT_EQ(ended.get_future().get().code(), absl::StatusCode::kUnavailable);
}

TEST_F(PipelineTest, AnswersMayComeInAnyOrder) {
  server_.execute_stream = [](FakeServer::ExecuteStreamEnd* stream) {
    std::vector<uint64_t> ids;
    for (v1::ExecuteRequest request; stream->Read(&request);) ids.push_back(request.request_id());
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      v1::ExecuteResponse response;
      response.set_request_id(*id);
      response.mutable_stats()->set_peak_bytes(static_cast<int64_t>(*id));
      stream->Write(response);
    }
    return grpc::Status::OK;
  };
  const auto pipeline = Open();
  std::vector<PendingAnswer> pending;
  pending.reserve(20);
  for (int i = 0; i < 20; ++i) pending.push_back(*pipeline->Submit({.fingerprint = "f"}));
  EXPECT_FALSE(pending[19].WaitUntil(absl::Now() + absl::Milliseconds(1)));
  ASSERT_TRUE(pipeline->Finish().ok());
  for (size_t i = 0; i < pending.size(); ++i) {
    ASSERT_TRUE(pending[i].WaitUntil(absl::InfinitePast()));
    EXPECT_EQ(pending[i].Wait()->stats.peak_bytes(), static_cast<int64_t>(i + 1));
  }
}

// Submit asks the server for a program that the client compiled, on a call of its own.
TEST_F(PipelineTest, CancelEndsTheSearchForAProgram) {
  std::promise<void> asked, released;
  server_.refuse_program = [&, free = released.get_future().share()](const auto&) {
    asked.set_value();
    free.wait();
    return grpc::Status::OK;
  };
  Serve([](const auto&, auto*) { return true; });
  const auto client = Client::Connect({.target = server_.target()});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto compiled = (*client)->Compile(v1::Graph());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const auto pipeline = (*client)->OpenPipeline({.session = "s"});
  std::thread other([&] {
    asked.get_future().wait();
    pipeline->Cancel();
  });
  const auto pending = pipeline->Submit({.fingerprint = compiled->program().fingerprint()});
  EXPECT_EQ(pending.status().code(), absl::StatusCode::kCancelled) << pending.status();
  other.join();
  released.set_value();
}

}  // namespace
}  // namespace tensord::client
