// The C++ blocks of the client's pages, each in the surroundings that its page leaves out.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/future.h"
#include "tensord/tensord.h"
#include "tests/e2e/server_binary.h"

// The first example brings this directive, which the others of the page rely on.
namespace worked_example {
using namespace tensord::client;  // NOLINT(google-build-using-namespace)
#include "tests/pages/blocks/clients/cpp/README/a-function-compiled.inc"
#include "tests/pages/blocks/clients/cpp/README/a-worked-example.inc"
#include "tests/pages/blocks/clients/cpp/README/linear-algebra-transforms-sums-parts.inc"
#include "tests/pages/blocks/clients/cpp/README/pipelines.inc"
}  // namespace worked_example

namespace front_page {
#include "tests/pages/blocks/README/from-c.inc"
}  // namespace front_page

namespace tensord::client {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

// Adds tensors of 16 MiB, from and in shared memory, as the page says.
void TakeSharedMemory(absl::StatusOr<HostTensor>* taken) {
#include "tests/pages/blocks/docs/use/shared-memory/shared-memory.inc"
  *taken = x;
}

absl::StatusOr<ExecuteAnswer> StartAndWait(Client& client, const std::string& step, const HostTensor& x) {
#include "tests/pages/blocks/clients/cpp/README/started-calls.inc"
  EXPECT_EQ(future.get().status(), answer.status());
  return answer;
}

HostTensor Ones(Shape shape) {
  const absl::StatusOr<HostTensor> ones =
      HostTensor::FromVector(std::vector<float>(static_cast<size_t>(ElementCount(shape).value_or(0)), 1), shape);
  EXPECT_TRUE(ones.ok()) << ones.status();
  return ones.value_or(HostTensor());
}

absl::StatusOr<HostTensor> DescendOnce(const std::unique_ptr<Client>& client) {
#include "tests/pages/blocks/docs/use/derivatives/in-c.inc"
  return updated;
}

// One server that shares memory, and is the default of clients in this process, as on a reader's machine.
class ClientPagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (ServerBinary::Path().empty()) GTEST_SKIP() << "TENSORD_BINARY is not set: no server to test against";
    const std::string socket = testing::TempDir() + "/pages-" + std::to_string(getpid());
    auto server = ServerBinary::Start({"--set=shared_memory.listen=unix:" + socket});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    setenv("TENSORD_TARGET", server_->target().c_str(), 1);
    auto client = Client::Connect();
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void TearDown() override { unsetenv("TENSORD_TARGET"); }

  std::unique_ptr<ServerBinary> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientPagesTest, WorkedExample) {
  testing::internal::CaptureStdout();
  const absl::Status status = worked_example::Run();
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_THAT(printed, StartsWith("[[0.26894"));  // 1 / (1 + e)
  EXPECT_THAT(printed, EndsWith("]]\n8\n"));
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ClientPagesTest, FrontPage) {
  const absl::StatusOr<HostTensor> y = front_page::Layer(Ones({3, 4}), Ones({4, 8}), Ones({8}));
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), (Shape{3, 8}));
  EXPECT_THAT(*y->Values<float>(), Each(testing::FloatNear(0.99990920f, 1e-6)));  // tanh(5)
}

TEST_F(ClientPagesTest, CompiledFunction) {
  const absl::Status status = worked_example::Predict(*client_, Ones({4, 8}), Ones({3, 4}));
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ClientPagesTest, LinearAlgebraTransformsSumsParts) {
  const Tensor identity = EmbedDiag(Tensor::FromHost(Ones({6})));
  const absl::StatusOr<HostTensor> sum =
      Eval(*client_, worked_example::Examples(identity, Tensor::FromHost(Ones({6, 2}))));
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->shape(), Shape{4});
  EXPECT_THAT(*sum->Values<float>(), Each(testing::FloatNear(2 + 6 + 12 + 12, 1e-4)));
}

TEST_F(ClientPagesTest, StartedCalls) {
  const auto step = Compile(
      *client_, [](const Tensor& x) { return x + 1; }, Spec<float>({2}));
  ASSERT_TRUE(step.ok()) << step.status();
  const absl::StatusOr<ExecuteAnswer> answer = StartAndWait(*client_, step->fingerprint(), Ones({2}));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(*answer->outputs.at(0).tensor->Values<float>(), Each(2));
}

TEST_F(ClientPagesTest, Derivatives) {
  const absl::StatusOr<HostTensor> updated = DescendOnce(client_);
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_THAT(*updated->Values<double>(), ElementsAre(DoubleNear(0.49, 1e-12), DoubleNear(-0.25, 1e-12)));
}

TEST_F(ClientPagesTest, Pipelines) {
  const auto step = Compile(
      *client_,
      [](const Tensor& state, const Tensor& batch) {
        const Tensor next = state + batch;
        return std::array<Tensor, 2>{next, Sum(next)};
      },
      Spec<float>({2}), Spec<float>({2}));
  ASSERT_TRUE(step.ok()) << step.status();
  const auto session = client_->OpenSession();
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Put("state", Ones({2})).ok());
  const std::vector<HostTensor> batches(3, Ones({2}));
  testing::internal::CaptureStdout();
  const absl::Status status = worked_example::Train(*client_, session->id(), step->fingerprint(), batches);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "4.0\n6.0\n8.0\n");
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ClientPagesTest, SharedMemory) {
  absl::StatusOr<HostTensor> taken = absl::UnknownError("the page returned early");
  TakeSharedMemory(&taken);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->element_count(), 1 << 24);
}

}  // namespace
}  // namespace tensord::client
