#include "tensord/started_call.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cpp/calls/started_calls.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/error_detail.h"
#include "tensord/future.h"
#include "tensord/messages.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A fake server whose executions wait until the test lets them go on.
class StartedCallTest : public ::testing::Test {
 protected:
  StartedCallTest() : free_(released_.get_future().share()) {
    server_.refuse_execute = [this](const v1::ExecuteRequest&, const grpc::ServerContext&) {
      begun_.set_value();
      free_.wait();
      return grpc::Status::OK;
    };
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = server_.target()});
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  ~StartedCallTest() override { Release(); }

  void Release() {
    if (!std::exchange(is_released_, true)) released_.set_value();
  }

  StartedCall<absl::StatusOr<ExecuteAnswer>> Start(ExecuteOptions options = {}) {
    return client_->StartExecute(
        {.graph = &graph_, .arguments = {HostTensor::Scalar(7.0f)}, .options = std::move(options)});
  }

  v1::Graph graph_;
  std::promise<void> begun_, released_;
  std::shared_future<void> free_;
  bool is_released_ = false;
  FakeServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(StartedCallTest, IsWaitedForAfterItReturned) {
  const auto call = Start();
  begun_.get_future().wait();
  EXPECT_FALSE(call.WaitUntil(absl::InfinitePast()));
  Release();
  const absl::StatusOr<ExecuteAnswer> answer = call.Wait();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer->outputs.at(0).tensor->Values<float>())[0], 7.0f);
  EXPECT_TRUE(call.WaitUntil(absl::InfinitePast()));
  EXPECT_TRUE(call.Wait().ok()) << "may be asked again";
}

TEST_F(StartedCallTest, CancelEndsACallWithoutADeadline) {
  const auto call = Start();
  begun_.get_future().wait();
  call.Cancel();
  EXPECT_EQ(call.Wait().status().code(), absl::StatusCode::kCancelled);
  call.Cancel();  // of a call that has ended: nothing
}

TEST_F(StartedCallTest, CancelBeforeTheCallReachesTheServerEndsItToo) {
  std::vector<StartedCall<absl::Status>> calls;
  // Nothing but its cancellation ends an upload.
  server_.put_tensor = [](grpc::ServerContext* context, auto* reader, auto*) {
    v1::PutTensorRequest request;
    reader->Read(&request);
    while (request.header().resumable() && !context->IsCancelled()) std::this_thread::yield();
    return grpc::Status(grpc::StatusCode::CANCELLED, "as asked");
  };
  for (int i = 0; i < 20; ++i) {
    calls.push_back(client_->StartPutTensor("s", "h", HostTensor::Scalar(1.0f)));
    calls.back().Cancel();
  }
  for (const auto& call : calls) EXPECT_EQ(call.Wait().code(), absl::StatusCode::kCancelled) << call.Wait();
}

TEST_F(StartedCallTest, CancelEndsThePauseBeforeAnotherAttempt) {
  std::atomic<int> attempts = 0;
  const auto refuse = [&attempts] {
    ++attempts;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "failed to connect");
  };
  const auto wait_for_one = [&attempts] {
    while (attempts == 0) std::this_thread::yield();
    attempts = 0;
  };
  server_.refuse = refuse;
  const auto compilation = client_->StartCompile(v1::Graph());
  wait_for_one();
  compilation.Cancel();
  EXPECT_EQ(compilation.Wait().status().code(), absl::StatusCode::kCancelled) << compilation.Wait().status();

  server_.get_tensor = [&refuse](auto&, auto*) { return refuse(); };
  const auto download = client_->StartGetTensor("s", "h");
  wait_for_one();
  download.Cancel();
  EXPECT_EQ(download.Wait().status().code(), absl::StatusCode::kCancelled) << download.Wait().status();

  server_.put_tensor = [&refuse](auto*, auto*, auto*) { return refuse(); };
  const auto upload = client_->StartPutTensor("s", "h", HostTensor::Scalar(1.0f));
  wait_for_one();
  upload.Cancel();
  EXPECT_EQ(upload.Wait().code(), absl::StatusCode::kCancelled) << upload.Wait();
}

TEST_F(StartedCallTest, DeadlinesCountFromTheStart) {
  const auto call = Start({.deadline = absl::Milliseconds(100)});
  EXPECT_EQ(call.Wait().status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(StartedCallTest, CallbacksAreCalledOnceInTheirOrder) {
  const auto call = Start();
  std::promise<std::vector<int>> all;
  std::vector<int> seen;
  call.Then([&](const absl::StatusOr<ExecuteAnswer>& answer) { seen.push_back(answer.ok() ? 1 : -1); });
  call.Then([&](const absl::StatusOr<ExecuteAnswer>&) {
    seen.push_back(2);
    all.set_value(seen);
  });
  Release();
  EXPECT_EQ(all.get_future().get(), (std::vector<int>{1, 2}));
  std::promise<void> late;  // called at once, or behind the second one, which may not have returned
  call.Then([&](const auto&) { late.set_value(); });
  late.get_future().wait();
}

TEST_F(StartedCallTest, ALateCallbackWaitsItsTurn) {
  std::promise<void> entered, leave;
  std::vector<int> order;
  auto call = Start();
  call.Then([&](const auto&) {
    entered.set_value();
    leave.get_future().wait();
    call.Then([&order](const auto&) { order.push_back(3); });  // at once, after those that wait
    order.push_back(4);
  });
  Release();
  entered.get_future().wait();
  call.Then([&order](const auto&) { order.push_back(1); });
  call.Then([&order](const auto&) { order.push_back(2); });
  EXPECT_TRUE(order.empty()) << "the first one has not returned yet";
  leave.set_value();
  client_.reset();  // waits for the callbacks
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
  call.Then([&order](const auto&) { order.push_back(5); });
  EXPECT_EQ(order.back(), 5) << "at once, since nothing else is being called";
}

TEST_F(StartedCallTest, ACallbackMayDestroyTheLastHandle) {
  Release();
  auto call = std::make_unique<StartedCall<absl::StatusOr<ExecuteAnswer>>>(Start());
  call->Wait().IgnoreError();
  client_.reset();
  bool is_called = false;
  call->Then([&](const auto& answer) {
    call.reset();
    is_called = answer.ok();
  });
  EXPECT_TRUE(is_called);
}

TEST_F(StartedCallTest, ACallbackStartsAnotherCall) {
  server_.refuse_execute = [](const auto&, const auto&) { return grpc::Status::OK; };
  std::promise<absl::Status> second;
  Start().Then([&](const auto&) {
    Start().Then([&](const absl::StatusOr<ExecuteAnswer>& answer) { second.set_value(answer.status()); });
  });
  EXPECT_TRUE(second.get_future().get().ok());
}

TEST_F(StartedCallTest, ACallbackOfACancelledCallMakesCallsThatAreNot) {
  const auto call = Start();
  begun_.get_future().wait();
  std::promise<absl::Status> asked;
  call.Then([&](const auto&) { asked.set_value(client_->GetServerInfo().status()); });
  call.Cancel();
  EXPECT_TRUE(asked.get_future().get().ok());
}

TEST_F(StartedCallTest, GoesOnWithoutItsHandle) {
  std::future<absl::StatusOr<ExecuteAnswer>> future = ToFuture(Start());
  Release();
  EXPECT_TRUE(future.get().ok());
}

TEST_F(StartedCallTest, TheClientsEndCancelsWhatRuns) {
  const auto call = Start();
  begun_.get_future().wait();
  client_ = nullptr;
  EXPECT_EQ(call.Wait().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(StartedCallTest, WhatCannotBeSentFailsItsHandle) {
  const auto call = client_->StartExecute({});
  EXPECT_EQ(call.Wait().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StartedCalls, OneTooManyFailsAtOnce) {
  StartedCalls calls;
  std::promise<void> released;
  const std::shared_future<void> free = released.get_future().share();
  std::vector<StartedCall<absl::Status>> begun;
  const auto work = [free] {
    free.wait();
    return absl::OkStatus();
  };
  for (size_t i = 0; i < StartedCalls::kMost; ++i) begun.push_back(calls.Start<absl::Status>(work));
  const StartedCall<absl::Status> refused = calls.Start<absl::Status>(work);
  EXPECT_TRUE(refused.WaitUntil(absl::InfinitePast()));
  EXPECT_EQ(refused.Wait().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.Wait().message()), HasSubstr("64"));
  released.set_value();
  for (const auto& call : begun) EXPECT_TRUE(call.Wait().ok());
  calls.End();
  EXPECT_EQ(calls.Start<absl::Status>(work).Wait().code(), absl::StatusCode::kCancelled);
}

TEST(StartedCalls, AnEndedCallMakesRoomBeforeAnybodyLearnsOfIt) {
  StartedCalls calls;
  for (int round = 0; round < 20; ++round) {
    std::vector<StartedCall<absl::Status>> begun;
    for (size_t i = 0; i < StartedCalls::kMost; ++i) {
      begun.push_back(calls.Start<absl::Status>([] { return absl::OkStatus(); }));
    }
    for (const auto& call : begun) ASSERT_TRUE(call.Wait().ok()) << call.Wait();
  }
}

TEST(StartedCalls, ChainsOfCallsKeepToTheBound) {
  StartedCalls calls;
  std::atomic<int> refused = 0, left = StartedCalls::kMost;
  std::promise<void> over;
  std::function<void(int)> go_on = [&](int more) {
    calls.Start<absl::Status>([] { return absl::OkStatus(); }).Then([&, more](const absl::Status& status) {
      refused += status.ok() ? 0 : 1;
      if (more > 0) return go_on(more - 1);
      if (--left == 0) over.set_value();
    });
  };
  for (size_t i = 0; i < StartedCalls::kMost; ++i) go_on(20);
  over.get_future().wait();
  calls.End();
  EXPECT_EQ(refused, 0);
}

TEST(StartedCalls, WhatACallThrowsIsItsOutcome) {
  StartedCalls calls;
  const auto no_memory = calls.Start<absl::Status>([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(no_memory.Wait().code(), absl::StatusCode::kResourceExhausted);
  const auto other = calls.Start<absl::StatusOr<int>>([]() -> absl::StatusOr<int> { throw std::length_error("long"); });
  EXPECT_EQ(other.Wait().status(), absl::InternalError("long"));
}

TEST_F(StartedCallTest, ACallbackMayDestroyTheClient) {
  const auto other = Start();
  std::promise<void> destroyed;
  client_->StartCompile(graph_).Then([&](const auto&) {
    client_.reset();
    destroyed.set_value();
  });
  destroyed.get_future().wait();
  EXPECT_EQ(other.Wait().status().code(), absl::StatusCode::kCancelled);
}

// An object of a thread that starts a call when the thread ends.
struct LastCall {
  ~LastCall() {
    if (calls != nullptr) calls->Start<absl::Status>([] { return absl::OkStatus(); }).Wait().IgnoreError();
  }
  StartedCalls* calls = nullptr;
};

TEST(StartedCalls, AThreadThatEndsMayStartOne) {
  StartedCalls calls;
  for (int i = 0; i < 50; ++i) {
    calls
        .Start<absl::Status>([&calls] {
          thread_local LastCall last;
          last.calls = &calls;
          return absl::OkStatus();
        })
        .Wait()
        .IgnoreError();
  }
}

TEST(Describe, GivesTheDetailAsWords) {
  v1::ErrorDetail detail;
  detail.set_reason("LIMIT_EXCEEDED");
  detail.set_node("n3");
  detail.set_op("Add");
  detail.set_limit("limits.rank");
  detail.set_limit_value(8);
  detail.set_actual_value(9);
  v1::Error error;
  error.set_code(3);
  error.set_message("too many axes");
  *error.mutable_detail() = detail;
  EXPECT_EQ(Describe(ToAbslStatus(error)),
            "INVALID_ARGUMENT: too many axes (LIMIT_EXCEEDED, node n3, op Add, limit limits.rank 8, here 9)");
  EXPECT_EQ(Describe(absl::NotFoundError("gone")), "NOT_FOUND: gone");
  EXPECT_EQ(Describe(absl::OkStatus()), "OK");
}

// A thread that is done waits to be joined by the next call, which is refused here, since a callback took the place.
TEST(StartedCalls, ARefusedCallJoinsThreadsToo) {
  std::promise<void> go, released, taken;
  const std::shared_future<void> free = released.get_future().share();
  StartedCalls calls;
  const std::function<absl::Status()> blocked = [free] {
    free.wait();
    return absl::OkStatus();
  };
  const auto first = calls.Start<absl::Status>([gone = go.get_future().share()] {
    gone.wait();
    return absl::OkStatus();
  });
  for (size_t i = 1; i < StartedCalls::kMost; ++i) {
    EXPECT_FALSE(calls.Start(blocked).WaitUntil(absl::InfinitePast()));
  }
  first.Then([&](const absl::Status&) {
    EXPECT_FALSE(calls.Start(blocked).WaitUntil(absl::InfinitePast()));
    taken.set_value();
  });
  go.set_value();
  taken.get_future().wait();
  for (int i = 0; i < 1000; ++i) {  // until the first one's thread is done, and beyond
    EXPECT_EQ(calls.Start(blocked).Wait().code(), absl::StatusCode::kResourceExhausted);
    std::this_thread::yield();
  }
  released.set_value();
  calls.End();
}

}  // namespace
}  // namespace tensord::client
