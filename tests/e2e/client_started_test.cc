// Started calls of the C++ client against the server binary: many at once, cancelled, and without a server.
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/future.h"
#include "tensord/messages.h"
#include "tensord/tensord.h"
#include "tests/e2e/client_test.h"

namespace tensord::client {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// As many as a client has at a time.
constexpr int kMany = 64;

using StartedExecution = StartedCall<absl::StatusOr<ExecuteAnswer>>;

// Some minutes of products, none of which can be left out.
Tensor Minutes(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 500; ++i) y = Tanh(MatMul(y, x));
  return y;
}
const int64_t kMinutesSize = 2000;

class ClientStartedTest : public ClientTest {
 protected:
  static absl::StatusOr<Program<Tensor>> CompileMinutes(Client& client) {
    return Compile(client, Minutes, Spec<double>({kMinutesSize, kMinutesSize}));
  }
  // Starts executions that last until they are cancelled.
  static std::vector<StartedExecution> StartMinutes(Client& client, const Program<Tensor>& minutes, int count) {
    const HostTensor x = *HostTensor::FromVector(
        std::vector<double>(static_cast<size_t>(kMinutesSize * kMinutesSize), 1e-3), {kMinutesSize, kMinutesSize});
    std::vector<StartedExecution> calls;
    for (int i = 0; i < count; ++i) calls.push_back(client.StartExecute(minutes.CallWith({x})));
    return calls;
  }
};

TEST_F(ClientStartedTest, ManyAtOnceEachHaveTheirAnswer) {
  const auto square = Compile(
      *client_, [](const Tensor& x) { return x * x; }, Spec<double>({Symbol("n")}));
  ASSERT_TRUE(square.ok()) << square.status();
  std::atomic<int> called = 0;
  std::vector<StartedExecution> calls;
  std::vector<std::future<absl::StatusOr<ExecuteAnswer>>> futures;
  for (int i = 0; i < kMany; ++i) {
    const std::vector<double> values(static_cast<size_t>(i + 1), i);
    calls.push_back(client_->StartExecute(square->CallWith({*HostTensor::FromVector(values, {i + 1})})));
    calls.back().Then([&called](const absl::StatusOr<ExecuteAnswer>& answer) { called += answer.ok() ? 1 : 0; });
    futures.push_back(ToFuture(calls.back()));
  }
  for (int i = 0; i < kMany; ++i) {
    const absl::StatusOr<ExecuteAnswer> answer = futures[static_cast<size_t>(i)].get();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->outputs.at(0).shape, Shape{i + 1});
    EXPECT_THAT(*answer->outputs.at(0).tensor->Values<double>(), Each(i * i));
  }
  EXPECT_EQ(called, kMany) << "a callback is called before the future that was asked for after it";
}

TEST_F(ClientStartedTest, TransfersAndCompilationsGoAlong) {
  const auto session = client_->OpenSession();
  ASSERT_TRUE(session.ok()) << session.status();
  const auto name = [](size_t i) { return absl::StrCat("t", i); };
  std::vector<StartedCall<absl::Status>> sent;
  std::vector<StartedCall<absl::StatusOr<v1::CompileResponse>>> compiled;
  for (size_t i = 0; i < 8; ++i) {
    const std::vector<float> values(1 << 18, static_cast<float>(i));
    sent.push_back(client_->StartPutTensor(session->id(), name(i), *HostTensor::FromVector(values, {1 << 18})));
    const absl::StatusOr<TracedGraph> traced =
        Trace({Tensor::FromHost(HostTensor::Scalar(1.0f)) + static_cast<int>(i)});
    ASSERT_TRUE(traced.ok()) << traced.status();
    compiled.push_back(client_->StartCompile(traced->graph));
  }
  for (const auto& call : sent) ASSERT_TRUE(call.Wait().ok()) << call.Wait();
  std::vector<StartedCall<absl::StatusOr<HostTensor>>> received;
  for (size_t i = 0; i < sent.size(); ++i) received.push_back(client_->StartGetTensor(session->id(), name(i)));
  for (size_t i = 0; i < received.size(); ++i) {
    const absl::StatusOr<HostTensor> tensor = received[i].Wait();
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_THAT(*tensor->Values<float>(), Each(static_cast<float>(i)));
    EXPECT_TRUE(compiled[i].Wait().ok()) << compiled[i].Wait().status();
  }
  EXPECT_EQ(ReasonOf(client_->StartGetTensor(session->id(), "none").Wait().status()), "HANDLE_UNKNOWN");
  EXPECT_TRUE(session->Close().ok());
}

TEST_F(ClientStartedTest, ACancelledRunLeavesTheServerToOthers) {
  const auto minutes = CompileMinutes(*client_);
  ASSERT_TRUE(minutes.ok()) << minutes.status();
  const std::vector<StartedExecution> calls = StartMinutes(*client_, *minutes, 4);
  // Some are cancelled at once, and the others when one of them has had time to run.
  calls[3].Cancel();
  EXPECT_EQ(calls[3].Wait().status().code(), absl::StatusCode::kCancelled) << calls[3].Wait().status();
  EXPECT_FALSE(calls[0].WaitUntil(absl::Now() + absl::Milliseconds(300)));
  for (const StartedExecution& call : calls) call.Cancel();
  for (const StartedExecution& call : calls) {
    EXPECT_EQ(call.Wait().status().code(), absl::StatusCode::kCancelled) << call.Wait().status();
  }
  // Within the client's two minutes: nothing of the above still runs.
  EXPECT_EQ(EvalScalar<double>(*client_, Sum(Full({3}, 2, DType::kF64))).value_or(0), 6);
}

TEST_F(ClientStartedTest, ADeadlineEndsARun) {
  const auto minutes = CompileMinutes(*client_);
  ASSERT_TRUE(minutes.ok()) << minutes.status();
  const HostTensor x = *HostTensor::FromVector(
      std::vector<double>(static_cast<size_t>(kMinutesSize * kMinutesSize), 1e-3), {kMinutesSize, kMinutesSize});
  ExecuteCall call = minutes->CallWith({x});
  call.options.deadline = absl::Milliseconds(300);
  const absl::StatusOr<ExecuteAnswer> late = client_->StartExecute(call).Wait();
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
}

TEST_F(ClientStartedTest, HandlesOutliveTheClient) {
  const auto minutes = CompileMinutes(*client_);
  ASSERT_TRUE(minutes.ok()) << minutes.status();
  const std::vector<StartedExecution> calls = StartMinutes(*client_, *minutes, 2);
  client_.reset();
  for (const StartedExecution& call : calls) {
    EXPECT_TRUE(call.WaitUntil(absl::InfinitePast())) << "the client waited for it";
    EXPECT_EQ(call.Wait().status().code(), absl::StatusCode::kCancelled) << call.Wait().status();
  }
}

TEST_F(ClientStartedTest, AServerThatIsGoneEndsAllCalls) {
  auto server = ServerBinary::Start();
  ASSERT_TRUE(server.ok()) << server.status();
  auto client = Client::Connect({.target = (*server)->target(), .deadline = absl::Minutes(2)});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto minutes = CompileMinutes(**client);
  ASSERT_TRUE(minutes.ok()) << minutes.status();
  std::vector<StartedExecution> calls = StartMinutes(**client, *minutes, 8);
  EXPECT_FALSE(calls[0].WaitUntil(absl::Now() + absl::Milliseconds(300)));
  (*server)->Kill();
  for (int i = 0; i < 8; ++i) calls.push_back((*client)->StartExecute(minutes->CallWith({HostTensor()})));
  for (const StartedExecution& call : calls) {
    EXPECT_EQ(call.Wait().status().code(), absl::StatusCode::kUnavailable) << call.Wait().status();
  }
}

}  // namespace
}  // namespace tensord::client
