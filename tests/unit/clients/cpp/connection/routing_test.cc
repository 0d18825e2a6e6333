// Life behind a balancer: the key of calls for it, programs that another server compiled, calls that are made again.
#include "clients/cpp/connection/routing.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clients/cpp/calls/compiled_programs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/messages.h"
#include "tensord/tensord.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord::client {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class RoutingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    graph_.set_name("g");
    server_.put_tensor = [](grpc::ServerContext*, grpc::ServerReader<v1::PutTensorRequest>* reader,
                            v1::PutTensorResponse* response) {
      int64_t count = 0;
      for (v1::PutTensorRequest request; reader->Read(&request);) {
        count += static_cast<int64_t>(request.chunk().data().size());
      }
      response->set_byte_count(count);
      return grpc::Status::OK;
    };
    server_.get_tensor = [](const v1::GetTensorRequest&, grpc::ServerWriter<v1::GetTensorResponse>*) {
      return FakeServer::ProgramNotFound();
    };
    Connect({});
  }

  void Connect(ConnectOptions options) {
    options.target = server_.target();
    client_ = *Client::Connect(std::move(options));
  }
  std::vector<std::string> Methods() const {
    std::vector<std::string> methods;
    for (const FakeServer::Called& called : server_.calls) methods.push_back(called.method);
    return methods;
  }
  // The next calls of Execute fail so.
  void FailExecute(int count, grpc::Status status) {
    server_.refuse_execute = [count, status](const auto&, const auto&) mutable {
      return count-- > 0 ? status : grpc::Status::OK;
    };
  }

  FakeServer server_;
  v1::Graph graph_;
  std::unique_ptr<Client> client_;
};

TEST_F(RoutingTest, CallsOfAProgramHaveOneKey) {
  const std::string program = client_->Compile(graph_)->program().fingerprint();
  ASSERT_TRUE(client_->Execute(program, {}).ok());
  ASSERT_TRUE(client_->Execute(graph_, {}).ok());
  ASSERT_TRUE(client_->Explain(graph_).ok());
  ASSERT_TRUE(client_->Explain(program).ok());
  ASSERT_TRUE(client_->GetProgram(program).ok());
  EXPECT_THAT(Methods(), ElementsAre("Compile", "Execute", "Execute", "Explain", "Explain", "GetProgram"));
  const std::string key = server_.calls[0].route;
  EXPECT_THAT(key, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(server_.calls, Each(Field(&FakeServer::Called::route, key)));
  // The first half of SHA-256 over the bytes of graph and options, as the documentation has it for other clients.
  EXPECT_EQ(RouteOfProgram(v1::Graph(), v1::CompileOptions()), "e3b0c44298fc1c149afbf4c8996fb924");

  graph_.set_name("h");
  ASSERT_TRUE(client_->Compile(graph_).ok());
  EXPECT_NE(server_.calls.back().route, key);
  graph_.set_name("g");
  ASSERT_TRUE(client_->Compile(graph_, {.disabled_passes = {"cse"}}).ok());
  EXPECT_NE(server_.calls.back().route, key);
}

TEST_F(RoutingTest, CallsOfASessionHaveItsKey) {
  const std::string program = client_->Compile(graph_)->program().fingerprint();
  server_.calls.clear();
  const std::string session = client_->OpenSession()->id();
  ASSERT_TRUE(client_->PutTensor(session, "x", HostTensor::Scalar(1.0f)).ok());
  ASSERT_TRUE(client_->Execute(ExecuteCall{.fingerprint = program, .session = session}).ok());
  EXPECT_FALSE(client_->GetTensor(session, "x").ok());
  ASSERT_TRUE(client_->DeleteTensors(session, {"x"}).ok());
  ASSERT_TRUE(client_->CloseSession(session).ok());
  EXPECT_THAT(Methods(),
              ElementsAre("OpenSession", "PutTensor", "Execute", "GetTensor", "DeleteTensors", "CloseSession"));
  const std::string key = server_.calls[0].route;
  EXPECT_THAT(key, MatchesRegex("session-[0-9a-f]{32}"));
  EXPECT_THAT(server_.calls, Each(Field(&FakeServer::Called::route, key)));

  ASSERT_TRUE(client_->OpenSession().ok());
  EXPECT_NE(server_.calls.back().route, key);
  EXPECT_FALSE(client_->GetTensor(session, "x").ok());  // it is closed, and its key forgotten
  EXPECT_EQ(server_.calls.back().route, "");
}

TEST_F(RoutingTest, WhatTheCallerSaysWins) {
  Connect({.metadata = {{kRouteMetadata, "here"}}});
  ASSERT_TRUE(client_->Compile(graph_).ok());
  ASSERT_TRUE(client_->OpenSession().ok());
  EXPECT_THAT(server_.calls, Each(Field(&FakeServer::Called::route, "here")));
  EXPECT_EQ(server_.metadata.count(kRouteMetadata), 1u);
}

TEST_F(RoutingTest, AGraphGoesAlongOnceWhereItsProgramIsNotFound) {
  const std::string program = client_->Compile(graph_, {.device = "cpu"})->program().fingerprint();
  FailExecute(1, FakeServer::ProgramNotFound());
  const auto result = client_->Execute(program, {HostTensor::Scalar(2.0f)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs.size(), 1u);
  EXPECT_THAT(Methods(), ElementsAre("Compile", "Execute", "Execute"));
  EXPECT_EQ(server_.execute_request.graph().name(), "g");
  EXPECT_EQ(server_.execute_request.options().device(), "cpu");

  FailExecute(2, FakeServer::ProgramNotFound());
  EXPECT_EQ(ReasonOf(client_->Execute(program, {}).status()), "PROGRAM_NOT_FOUND") << "no more than once";
  server_.calls.clear();
  FailExecute(1, FakeServer::ProgramNotFound());
  EXPECT_EQ(ReasonOf(client_->Execute("nobody compiled it here", {}).status()), "PROGRAM_NOT_FOUND");
  EXPECT_THAT(Methods(), ElementsAre("Execute"));
}

TEST_F(RoutingTest, WhatIsUnknownTwiceInARowLearnsItsFingerprint) {
  const std::string program = client_->Compile(graph_)->program().fingerprint();
  for (int i = 0; i < 2; ++i) {
    FailExecute(1, FakeServer::ProgramNotFound());
    ASSERT_TRUE(client_->Execute(program, {}).ok());
  }
  EXPECT_THAT(Methods(), ElementsAre("Compile", "Execute", "Execute", "Execute", "Compile", "Execute"));
}

TEST_F(RoutingTest, APipelineMakesItsProgramsKnown) {
  std::vector<std::string> fingerprints;
  server_.execute_stream = [&](FakeServer::ExecuteStreamEnd* stream) {
    for (v1::ExecuteRequest request; stream->Read(&request);) {
      fingerprints.push_back(request.fingerprint());
      v1::ExecuteResponse response;
      response.set_request_id(request.request_id());
      stream->Write(response);
    }
    return grpc::Status::OK;
  };
  server_.refuse_program = [](const v1::GetProgramRequest&) { return FakeServer::ProgramNotFound(); };
  const std::string program = client_->Compile(graph_)->program().fingerprint();
  const std::string session = client_->OpenSession()->id();
  server_.calls.clear();
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<Pipeline> pipeline = client_->OpenPipeline({.session = session});
    ASSERT_TRUE(pipeline->Submit({.fingerprint = program}).ok());
    ASSERT_TRUE(pipeline->Submit({.fingerprint = program}).ok());
    ASSERT_TRUE(pipeline->Finish().ok());
  }
  EXPECT_THAT(fingerprints, ElementsAre(program, program, program, program));
  EXPECT_THAT(Methods(), ::testing::UnorderedElementsAre("ExecuteStream", "GetProgram", "Compile", "ExecuteStream",
                                                         "GetProgram", "Compile"));
  EXPECT_THAT(server_.calls, Each(Field(&FakeServer::Called::route, MatchesRegex("session-.*"))));
}

TEST_F(RoutingTest, APipelineAsksAgainForWhatItsServerForgot) {
  bool is_known = false;
  server_.execute_stream = [&](FakeServer::ExecuteStreamEnd* stream) {
    for (v1::ExecuteRequest request; stream->Read(&request); is_known = true) {
      v1::ExecuteResponse response;
      response.set_request_id(request.request_id());
      if (!is_known) response.mutable_error()->mutable_detail()->set_reason("PROGRAM_NOT_FOUND");
      if (!is_known) response.mutable_error()->set_code(static_cast<int>(grpc::StatusCode::FAILED_PRECONDITION));
      stream->Write(response);
    }
    return grpc::Status::OK;
  };
  const std::string program = client_->Compile(graph_)->program().fingerprint();
  const std::string session = client_->OpenSession()->id();
  server_.calls.clear();
  const std::unique_ptr<Pipeline> pipeline = client_->OpenPipeline({.session = session});
  EXPECT_FALSE(pipeline->Submit({.fingerprint = program})->Wait().ok());
  EXPECT_TRUE(pipeline->Submit({.fingerprint = program})->Wait().ok());
  EXPECT_TRUE(pipeline->Submit({.fingerprint = program})->Wait().ok());
  EXPECT_TRUE(pipeline->Finish().ok());
  EXPECT_THAT(Methods(), ::testing::UnorderedElementsAre("ExecuteStream", "GetProgram", "GetProgram"));
}

TEST_F(RoutingTest, WhatMayRunTwiceIsMadeAgain) {
  const std::string program = client_->Compile(graph_)->program().fingerprint();
  const grpc::Status broken(grpc::StatusCode::UNAVAILABLE, "broken");
  for (const char* not_sent : {"failed to connect to all addresses", "Received http2 header with status: 503"}) {
    const grpc::Status refused(grpc::StatusCode::UNAVAILABLE, not_sent);
    server_.calls.clear();
    FailExecute(3, refused);
    EXPECT_TRUE(client_->Execute(program, {}).ok());
    EXPECT_EQ(Methods(), std::vector<std::string>(4, "Execute"));
    FailExecute(4, refused);
    EXPECT_EQ(client_->Execute(program, {}).status().code(), absl::StatusCode::kUnavailable) << "four times at most";
  }
  server_.calls.clear();
  FailExecute(1, broken);
  EXPECT_TRUE(client_->Execute(program, {}).ok());
  FailExecute(2, broken);
  EXPECT_EQ(client_->Execute(program, {}).status().code(), absl::StatusCode::kUnavailable) << "servers may have died";
  EXPECT_EQ(Methods(), std::vector<std::string>(4, "Execute"));
  for (const char* method : {"Compile", "Explain", "GetProgram", "GetServerInfo"}) {
    server_.calls.clear();
    bool is_first = true;
    server_.refuse = [&] { return std::exchange(is_first, false) ? broken : grpc::Status::OK; };
    const absl::Status done = method == std::string("Compile")      ? client_->Compile(graph_).status()
                              : method == std::string("Explain")    ? client_->Explain(graph_).status()
                              : method == std::string("GetProgram") ? client_->GetProgram(program).status()
                                                                    : client_->GetServerInfo().status();
    EXPECT_TRUE(done.ok()) << method << done;
    EXPECT_THAT(Methods(), ElementsAre(method, method));
  }
}

TEST_F(RoutingTest, WhatMayNotRunTwiceIsNot) {
  const std::string program = client_->Compile(graph_)->program().fingerprint();
  const std::string session = client_->OpenSession()->id();
  server_.refuse = [] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken"); };
  server_.calls.clear();
  EXPECT_FALSE(
      client_->Execute({.fingerprint = program, .arguments = {Argument::Donated("x")}, .session = session}).ok());
  EXPECT_FALSE(client_->Execute({.fingerprint = program, .results = {ResultPlan::Keep("y")}, .session = session}).ok());
  EXPECT_FALSE(client_->Execute({.fingerprint = program, .results = {ResultPlan::Both("y")}, .session = session}).ok());
  EXPECT_FALSE(client_->OpenSession().ok());
  EXPECT_FALSE(client_->DeleteTensors(session, {"x"}).ok());
  EXPECT_THAT(Methods(), ElementsAre("Execute", "Execute", "Execute", "OpenSession", "DeleteTensors"));
}

TEST_F(RoutingTest, OtherFailuresAreNotMadeAgain) {
  FailExecute(1, grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full"));
  EXPECT_FALSE(client_->Execute(graph_, {}).ok());
  EXPECT_THAT(Methods(), ElementsAre("Execute"));
}

TEST(Proxies, AnAnswerOfAProxySaysSo) {
  const grpc::Status no_server(grpc::StatusCode::UNAVAILABLE, "Received http2 header with status: 503");
  EXPECT_THAT(std::string(ToAbslStatus(no_server).message()),
              HasSubstr("a proxy answered for a tensord server, with HTTP 503: no server behind it takes calls"));
  const grpc::Status other(grpc::StatusCode::UNIMPLEMENTED, "Received http2 header with status: 404");
  EXPECT_EQ(ToAbslStatus(other).message(), "a proxy answered for a tensord server, with HTTP 404");
}

v1::CompileRequest RequestOf(const std::string& name) {
  v1::CompileRequest request;
  request.mutable_graph()->set_name(name);
  return request;
}

TEST(CompiledProgramsTest, KeepsThoseUsedLast) {
  const std::string large(1000, 'x');
  CompiledPrograms programs(/*most_bytes=*/2500);
  programs.Add("a", RequestOf(large), "route a");
  programs.Add("b", RequestOf(large), "route b");
  EXPECT_EQ(programs.Find("a")->route, "route a");
  programs.Add("c", RequestOf(large), "route c");
  EXPECT_FALSE(programs.Find("b").has_value());
  EXPECT_EQ(programs.Find("a")->source->graph().name(), large);
  EXPECT_EQ(programs.Find("c")->fingerprint, "c");
  programs.Add("a", RequestOf("small"), "route a");
  EXPECT_EQ(programs.Find("a")->source->graph().name(), "small");
  programs.Add("d", RequestOf(std::string(5000, 'x')), "route d");
  EXPECT_TRUE(programs.Find("d").has_value()) << "one stays in any case";
  EXPECT_FALSE(programs.Find("a").has_value());
}

TEST(CompiledProgramsTest, TellsWhatIsUnknownTwiceInARow) {
  CompiledPrograms programs;
  programs.Add("a", RequestOf("a"), "");
  EXPECT_FALSE(programs.NoteAnswer("a", /*was_known=*/false));
  EXPECT_FALSE(programs.NoteAnswer("a", /*was_known=*/true));
  EXPECT_FALSE(programs.NoteAnswer("a", /*was_known=*/false));
  EXPECT_TRUE(programs.NoteAnswer("a", /*was_known=*/false));
  EXPECT_FALSE(programs.NoteAnswer("never compiled", /*was_known=*/false));
  programs.Rename("a", "b");
  EXPECT_EQ(programs.Find("a")->fingerprint, "b");
}

}  // namespace
}  // namespace tensord::client
