// The C++ client's executions with tensors that a session keeps: handles among the arguments, results that stay.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/peers/client_values.h"

namespace tensord {
namespace {

using client::Argument;
using client::Client;
using client::ExecuteCall;
using client::HostTensor;
using client::ResultPlan;
using ::testing::Each;
using ::testing::ElementsAre;

// y = x + x and z = x * x on f32[n].
v1::Graph TwoResults() {
  return GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { symbol: "n" } } }
    nodes { name: "y" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    nodes { name: "z" inputs: "x" inputs: "x" binary: BINARY_OP_MULTIPLY }
    outputs { name: "y" value: "y" } outputs { name: "z" value: "z" })");
}

class ClientCallsTest : public ::testing::Test {
 protected:
  void Start(const std::vector<std::string>& settings = {}, bool shared_memory = false) {
    server_ = std::make_unique<InProcessServer>(settings);
    auto client = Client::Connect({.target = server_->target(), .shared_memory = shared_memory});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    session_ = client_->OpenSession()->id();
  }

  const TemporaryFolder folder_;
  std::unique_ptr<InProcessServer> server_;
  std::unique_ptr<Client> client_;
  std::string session_;
};

TEST_F(ClientCallsTest, ResultsStayOrComeOrBothOrNeither) {
  Start();
  const v1::Graph graph = TwoResults();
  ASSERT_TRUE(client_->PutTensor(session_, "x", Floats(5, 3)).ok());
  const auto first = client_->Execute({.graph = &graph,
                                       .arguments = {Argument::Handle("x")},
                                       .results = {ResultPlan::Keep("y"), ResultPlan::Both("z")},
                                       .session = session_});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->outputs.size(), 2u);
  EXPECT_FALSE(first->outputs[0].tensor.has_value());
  EXPECT_EQ(first->outputs[0].dtype, client::DType::kF32);
  EXPECT_THAT(first->outputs[0].shape, ElementsAre(5));
  EXPECT_THAT(*first->outputs[1].tensor->Values<float>(), Each(9));
  EXPECT_EQ(first->stats.device(), "cpu:0");
  EXPECT_THAT(*client_->GetTensor(session_, "y")->Values<float>(), Each(6));
  EXPECT_THAT(*client_->GetTensor(session_, "z")->Values<float>(), Each(9));

  const auto second = client_->Execute({.graph = &graph,
                                        .arguments = {Argument::Donated("y")},
                                        .results = {ResultPlan::Discard()},
                                        .session = session_});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(second->outputs[0].tensor.has_value());
  EXPECT_THAT(*second->outputs[1].tensor->Values<float>(), Each(36));
  EXPECT_EQ(ReasonOf(client_->GetTensor(session_, "y").status()), "HANDLE_UNKNOWN");

  const auto missing = client_->DeleteTensors(session_, {"x", "y", "z"});
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_THAT(*missing, ElementsAre("y"));
  EXPECT_TRUE(client_->CloseSession(session_).ok());
}

TEST_F(ClientCallsTest, SharedMemoryCarriesWhatIsSentAndReturned) {
  Start({"shared_memory.listen=unix:" + folder_.path() + "/m"}, /*shared_memory=*/true);
  ASSERT_NE(client_->shared_memory(), nullptr);
  const std::string program = client_->Compile(TwoResults())->program().fingerprint();
  const HostTensor large = Floats(1 << 20, 2);
  const ExecuteCall sent = {.fingerprint = program, .arguments = {large}};
  const ExecuteCall kept = {.fingerprint = program,
                            .arguments = {large},
                            .results = {ResultPlan::Keep("y"), ResultPlan::Both("z")},
                            .session = session_};
  const ExecuteCall used = {.fingerprint = program,
                            .arguments = {Argument::Donated("y")},
                            .results = {ResultPlan::Return(), ResultPlan::Discard()},
                            .session = session_};
  for (int round = 0; round < 3; ++round) {
    const auto all = client_->Execute(sent);  // the first time the client learns the sizes of results
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_THAT(*all->outputs[0].tensor->Values<float>(), Each(4));
    const auto first = client_->Execute(kept);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_FALSE(first->outputs[0].tensor.has_value());
    EXPECT_THAT(*first->outputs[1].tensor->Values<float>(), Each(4));
    const auto second = client_->Execute(used);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_THAT(*second->outputs[0].tensor->Values<float>(), Each(8));
    const auto is_there = [this](const HostTensor& tensor) {
      return client_->shared_memory()->Find(tensor.bytes(), tensor.size_bytes()).has_value();
    };
    EXPECT_TRUE(is_there(*first->outputs[1].tensor));
    EXPECT_TRUE(is_there(*second->outputs[0].tensor));
    ASSERT_TRUE(client_->DeleteTensors(session_, {"z"}).ok());
  }
}

TEST_F(ClientCallsTest, WhatCannotBeSentIsRefusedHere) {
  Start();
  const v1::Graph graph = TwoResults();
  EXPECT_EQ(client_->Execute(ExecuteCall{.arguments = {Floats(1, 1)}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client_->Execute({.fingerprint = "f", .graph = &graph}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto nobodys = client_->Execute({.graph = &graph, .arguments = {Argument::Handle("x")}});
  EXPECT_EQ(ReasonOf(nobodys.status()), "SESSION_UNKNOWN");
}

}  // namespace
}  // namespace tensord
