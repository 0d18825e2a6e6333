#include "tensord/client.h"

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clients/cpp/wire/health.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/messages.h"
#include "tensord/tensord.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Client> Connect(const FakeServer& server, ConnectOptions options = {}) {
  options.target = server.target();
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(std::move(options));
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

TEST(Client, ConnectSaysWhereNobodyAnswers) {
  const auto client =
      Client::Connect({.target = "unix:/nowhere/tensord.sock", .connect_timeout = absl::Milliseconds(50)});
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("unix:/nowhere/tensord.sock"));
}

TEST(Client, ConnectWaitsForSharedMemoryNoLongerThanForTheServer) {
  FakeServer server;
  std::promise<void> released;
  server.refuse = [wait = released.get_future().share()] {
    wait.wait();
    return grpc::Status::OK;
  };
  const auto client =
      Client::Connect({.target = server.target(), .connect_timeout = absl::Seconds(1), .shared_memory = true});
  released.set_value();
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->shared_memory(), nullptr);
  EXPECT_TRUE((*client)->GetServerInfo().ok());
}

TEST(Client, ExecutesAGraphAndReturnsTensors) {
  FakeServer server;
  const std::unique_ptr<Client> client = Connect(server);
  const HostTensor small = *HostTensor::FromVector(std::vector<double>{1, 2, 3}, {3});
  // More than the 4 MiB that gRPC receives by default.
  const HostTensor large = *HostTensor::FromVector(std::vector<float>(3 << 20, 0.5f), {3, 1 << 20});
  v1::Graph graph;
  graph.set_name("echo");
  const auto result = client->Execute(graph, {small, large},
                                      {.device = "cpu", .disabled_passes = {"cse"}, .priority = 2, .profile = true});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->outputs.size(), 2u);
  EXPECT_THAT(*result->outputs[0].Values<double>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(*result->outputs[1].Values<float>(), *large.Values<float>());
  EXPECT_EQ(result->stats.device(), "cpu:0");
  EXPECT_EQ(server.execute_request.graph().name(), "echo");
  EXPECT_EQ(server.execute_request.options().device(), "cpu");
  EXPECT_EQ(server.execute_request.options().order(), v1::MEMORY_ORDER_ROW_MAJOR);
  EXPECT_THAT(server.execute_request.options().disabled_passes(), ElementsAre("cse"));
  EXPECT_EQ(server.execute_request.priority(), 2);
  EXPECT_TRUE(server.execute_request.profile());
}

TEST(Client, ExecutesByFingerprint) {
  FakeServer server;
  const std::unique_ptr<Client> client = Connect(server);
  ASSERT_TRUE(client->Execute("abc", {}).ok());
  EXPECT_EQ(server.execute_request.fingerprint(), "abc");
  EXPECT_FALSE(server.execute_request.has_options());
}

TEST(Client, CarriesTheServersDetailOfAFailure) {
  FakeServer server;
  const std::unique_ptr<Client> client = Connect(server);
  v1::ErrorDetail detail;
  detail.set_reason("SHAPE_MISMATCH");
  detail.set_node(std::string(90, 'n'));
  detail.set_op("Add");
  detail.set_limit("max_nodes");
  detail.set_limit_value(10);
  detail.set_actual_value(20);
  detail.mutable_retry_after()->set_nanos(500000000);
  server.refuse = [&detail] {
    return FakeServer::Refusal(grpc::StatusCode::INVALID_ARGUMENT, "shapes differ", detail);
  };
  for (const absl::Status& status :
       {client->Execute(v1::Graph(), {}).status(), client->Compile(v1::Graph()).status(),
        client->Explain(v1::Graph()).status(), client->PlanContractions(v1::Graph()).status(),
        client->GetProgram("abc").status(), client->GetServerInfo().status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "shapes differ");
    const std::optional<ErrorDetail> got = GetErrorDetail(status);
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->reason, "SHAPE_MISMATCH");
    EXPECT_EQ(got->node, std::string(90, 'n'));
    EXPECT_EQ(got->op, "Add");
    EXPECT_EQ(got->limit, "max_nodes");
    EXPECT_EQ(got->limit_value, 10);
    EXPECT_EQ(got->actual_value, 20);
    EXPECT_EQ(got->retry_after, absl::Milliseconds(500));
  }
}

TEST(Client, FailuresWithoutDetailHaveNone) {
  EXPECT_FALSE(GetErrorDetail(absl::OkStatus()).has_value());
  EXPECT_FALSE(GetErrorDetail(ToAbslStatus(grpc::Status(grpc::StatusCode::ABORTED, "x"))).has_value());
  const absl::Status garbage = ToAbslStatus(grpc::Status(grpc::StatusCode::ABORTED, "x", "\xff\xff\xff"));
  EXPECT_EQ(garbage.code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(GetErrorDetail(garbage).has_value());
  EXPECT_TRUE(ToAbslStatus(grpc::Status::OK).ok());
}

TEST(Client, SendsMetadataAndHonoursDeadlines) {
  FakeServer server;
  const std::unique_ptr<Client> client =
      Connect(server, {.deadline = absl::Hours(1), .metadata = {{"authorization", "Bearer t"}}});
  ASSERT_TRUE(client->Compile(v1::Graph()).ok());
  EXPECT_EQ(server.metadata.find("authorization")->second, "Bearer t");
  server.refuse_execute = [](const v1::ExecuteRequest&, const grpc::ServerContext& context) {
    while (!context.IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return grpc::Status::OK;
  };
  EXPECT_EQ(client->Execute(v1::Graph(), {}, {.deadline = absl::Milliseconds(20)}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(Client, ACallThatAStoppingServerCancelsGoesToAnother) {
  FakeServer server;
  const std::unique_ptr<Client> client = Connect(server);
  int calls = 0;
  server.refuse = [&calls] {
    return ++calls == 1 ? grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED") : grpc::Status::OK;
  };
  EXPECT_TRUE(client->Compile(v1::Graph()).ok());
  EXPECT_EQ(calls, 2);
  server.refuse = [] { return grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED"); };
  const absl::Status status = client->Compile(v1::Graph()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(Client, SendsNoCallWhoseDeadlineHasPassed) {
  FakeServer server;
  const std::unique_ptr<Client> client = Connect(server);
  server.refuse_execute = [](const v1::ExecuteRequest&, const grpc::ServerContext&) {
    ADD_FAILURE() << "the call was sent";
    return grpc::Status::OK;
  };
  server.put_tensor = [](auto*, auto*, auto*) {
    ADD_FAILURE() << "a part of the upload was sent, or was to be deleted";
    return grpc::Status::OK;
  };
  server.get_tensor = [](const auto&, auto*) {
    ADD_FAILURE() << "the download was sent";
    return grpc::Status::OK;
  };
  for (const absl::Duration deadline : {absl::ZeroDuration(), -absl::Hours(1), -absl::InfiniteDuration()}) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(
          absl::IsDeadlineExceeded(client->PutTensor("s", "h", HostTensor::Scalar(1.0f), {.deadline = deadline})));
      EXPECT_TRUE(absl::IsDeadlineExceeded(client->GetTensor("s", "h", {.deadline = deadline}).status()));
      EXPECT_TRUE(absl::IsDeadlineExceeded(client->Execute(v1::Graph(), {}, {.deadline = deadline}).status()));
    }
  }
}

TEST(Client, AsksForProgramsExplanationsAndInfo) {
  FakeServer server;
  server.info.set_version("1.2.3");
  server.info.add_capabilities()->set_op("Add");
  const std::unique_ptr<Client> client = Connect(server);
  EXPECT_EQ(client->GetProgram("abc")->fingerprint(), "abc");
  const std::string fingerprint(64, 'a');
  EXPECT_EQ(*client->Explain(fingerprint), "one segment");
  EXPECT_EQ(server.explain_request.fingerprint(), fingerprint);
  EXPECT_EQ(*client->Explain("abcd"), "one segment");
  EXPECT_EQ(server.explain_request.fingerprint_prefix(), "abcd");
  server.contractions.emplace_back().set_node("einsum");
  const auto plans = client->PlanContractions(v1::Graph());
  ASSERT_TRUE(plans.ok()) << plans.status();
  ASSERT_EQ(plans->size(), 1u);
  EXPECT_EQ(plans->front().node(), "einsum");
  EXPECT_TRUE(server.explain_request.has_graph());
  EXPECT_EQ(client->GetServerInfo()->capabilities_size(), 0);
  EXPECT_EQ(client->GetServerInfo(/*with_capabilities=*/true)->capabilities_size(), 1);
}

TEST(Client, LeasesEnd) {
  FakeServer fake;
  const auto client = Client::Connect({.target = fake.target()});
  ASSERT_TRUE(client.ok()) << client.status();
  for (const absl::Duration lease : {absl::InfiniteDuration(), -absl::InfiniteDuration(), absl::Seconds(-1)}) {
    const absl::Status refused = (*client)->OpenSession(lease).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr(absl::FormatDuration(lease)));
  }
  EXPECT_TRUE((*client)->OpenSession(absl::ZeroDuration()).ok());
}

TEST(Client, CallsOfNoProgramAreRefused) {
  const absl::Status refused = ToExecuteRequest({}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), ::testing::Not(::testing::HasSubstr("both")));
}

TEST(Client, WhatNobodyTakesSaysWhere) {
  const absl::Status nobody = ToAbslStatus(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""));
  EXPECT_EQ(nobody.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(nobody.message()), ::testing::HasSubstr("admin.listen"));
  EXPECT_EQ(ToAbslStatus(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "why")).message(), "why");
}

TEST(Client, ChecksHealth) {
  FakeServer server;
  const std::unique_ptr<Client> client = Connect(server);
  EXPECT_EQ(*client->CheckHealth(), Health::kServing);
  server.health()->SetServingStatus("tensord.v1.Compute", false);
  EXPECT_EQ(*client->CheckHealth("tensord.v1.Compute"), Health::kNotServing);
  EXPECT_EQ(*client->CheckHealth("nobody"), Health::kServiceUnknown);
}

TEST(Health, ReadsWhatTheServerMaySend) {
  const auto decode = [](const std::string& bytes) {
    const grpc::Slice slice(bytes);
    return DecodeHealthResponse(grpc::ByteBuffer(&slice, 1));
  };
  EXPECT_EQ(*decode("\x08\x01"), Health::kServing);
  EXPECT_EQ(*decode("\x12\x01z\x08\x02"), Health::kNotServing);
  EXPECT_EQ(*decode("\x08\x63"), Health::kUnknown);
  EXPECT_EQ(decode("\x08").status().code(), absl::StatusCode::kInternal);
}

TEST(Eval, EvaluatesSharedWorkInOneCall) {
  FakeServer server;
  const std::unique_ptr<Client> client = Connect(server);
  const Tensor x = Tensor::FromVector<float>({1, 2}, {2});
  const Tensor y = Tensor::FromVector<float>({3}, {1});
  // The fake server returns its arguments, here the two inputs.
  const auto values = EvalAll(*client, {x, y});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(*(*values)[0].Values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(*(*values)[1].Values<float>(), ElementsAre(3));
  EXPECT_THAT(*Eval(*client, x)->Values<float>(), ElementsAre(1, 2));
  EXPECT_TRUE(EvalAll(*client, {})->empty());
}

TEST(Eval, FailuresComeOut) {
  FakeServer server;
  const std::unique_ptr<Client> client = Connect(server);
  const Tensor x = Tensor::FromVector<float>({1, 2}, {2});
  EXPECT_EQ(Eval(*client, x + Tensor::FromVector<float>({1, 2, 3}, {3})).status().code(),
            absl::StatusCode::kInvalidArgument);
  // One argument, so one result, for two outputs.
  EXPECT_EQ(EvalAll(*client, {x, Exp(x)}).status().code(), absl::StatusCode::kInternal);
}

TEST(DefaultTarget, IsTheUsersRuntimeFolder) {
  const char* const before = std::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_EQ(DefaultTarget(), "unix:/run/user/7/tensord.sock");
  setenv("XDG_RUNTIME_DIR", "", 1);
  EXPECT_EQ(DefaultTarget(), absl::StrCat("unix:/tmp/tensord-", getuid(), "/tensord.sock"));
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(DefaultTarget(), absl::StrCat("unix:/tmp/tensord-", getuid(), "/tensord.sock"));
  if (before != nullptr) setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
}

TEST(DefaultTarget, IsWhatTheEnvironmentNames) {
  const char* const before = std::getenv("TENSORD_TARGET");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TENSORD_TARGET", "host:7", 1);
  EXPECT_EQ(DefaultTarget(), "host:7");
  setenv("TENSORD_TARGET", "", 1);
  EXPECT_THAT(DefaultTarget(), testing::StartsWith("unix:"));
  unsetenv("TENSORD_TARGET");
  if (before != nullptr) setenv("TENSORD_TARGET", kept.c_str(), 1);
}

}  // namespace
}  // namespace tensord::client
