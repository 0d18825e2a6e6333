// A pipeline ends whatever its transport does: here one of its steps never comes back.

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clients/cpp/calls/execute_stream.h"
#include "clients/cpp/connection/channel_arguments.h"
#include "clients/cpp/connection/steady_time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tensord/messages.h"
#include "tensord/pipeline.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/peers/client_values.h"
#include "tests/testlib/peers/lost_step.h"

namespace tensord {
namespace {

using client::Pipeline;
class LosesFactory : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit LosesFactory(LostStep step) : step_(step) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(grpc::experimental::ClientRpcInfo* /*info*/) override {
    return new LosesStep(step_);
  }

 private:
  const LostStep step_;
};

struct EndCase {
  LostStep step;
  bool has_deadline = false;  // else it is cancelled
  bool is_finished = false;   // else only destroyed
};

// The codes that the answer and the pipeline ended with.
std::pair<absl::StatusCode, absl::StatusCode> End(const std::string& target, const EndCase& c) {
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<LosesFactory>(c.step));
  grpc::GenericStub stub(grpc::experimental::CreateCustomChannelWithInterceptors(
      target, grpc::InsecureChannelCredentials(), client::TunedChannelArguments(), std::move(interceptors)));
  auto context = std::make_unique<grpc::ClientContext>();
  if (c.has_deadline) context->set_deadline(client::ToGrpcDeadline(client::SteadyNow() + absl::Milliseconds(200)));
  auto pipeline = std::make_unique<Pipeline>(std::make_unique<client::ExecuteStream>(
      stub, std::move(context), target, "", [](const std::string& fingerprint) { return fingerprint; },
      client::ExecuteStream::Sharing()));
  const v1::Graph graph = DoubleGraph();
  absl::StatusOr<client::PendingAnswer> answer = pipeline->Submit({.graph = &graph, .arguments = {Floats(3, 1)}});
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!c.has_deadline) pipeline->Cancel();
  const absl::Status finished = c.is_finished ? pipeline->Finish() : absl::OkStatus();
  pipeline.reset();
  return {answer->Wait().status().code(), finished.code()};
}

TEST(PipelineEndTest, ComesThoughAStepOfTheTransportNeverDoes) {
  InProcessServer server;
  std::vector<EndCase> cases;
  for (const LostStep step : {LostStep::PRE_SEND_MESSAGE, LostStep::POST_RECV_STATUS}) {
    for (const bool has_deadline : {false, true}) {
      for (const bool is_finished : {false, true}) cases.push_back({step, has_deadline, is_finished});
    }
  }
  std::vector<std::future<std::pair<absl::StatusCode, absl::StatusCode>>> ends;
  for (const EndCase& c : cases) {
    ends.push_back(std::async(std::launch::async, [&server, c] { return End(server.target(), c); }));
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto [answer, finished] = ends[i].get();
    const absl::StatusCode code =
        cases[i].has_deadline ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kCancelled;
    // The destructor cancels before the deadline has passed. Where only the end is lost the answer may have come.
    const bool may_be_cancelled = !cases[i].is_finished && answer == absl::StatusCode::kCancelled;
    const bool may_have_come = cases[i].step == LostStep::POST_RECV_STATUS && answer == absl::StatusCode::kOk;
    EXPECT_TRUE(answer == code || may_be_cancelled || may_have_come) << i << ": " << answer;
    EXPECT_EQ(finished, cases[i].is_finished ? code : absl::StatusCode::kOk) << i;
  }
}

}  // namespace
}  // namespace tensord
