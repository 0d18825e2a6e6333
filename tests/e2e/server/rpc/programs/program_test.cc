// Compiling, finding and explaining programs.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::CompileResponse CompileOrFail(InProcessServer& server, const v1::Graph& graph,
                                  const v1::CompileOptions& options = {}) {
  v1::CompileRequest request;
  *request.mutable_graph() = graph;
  *request.mutable_options() = options;
  v1::CompileResponse response;
  const grpc::Status status = Compile(server.stub(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

TEST(ProgramTest, CompileTellsWhatItMade) {
  InProcessServer server;
  const v1::CompileResponse response = CompileOrFail(server, LargeSum());
  EXPECT_EQ(response.source(), v1::CompileResponse::SOURCE_COMPILED);
  const v1::Program& program = response.program();
  EXPECT_EQ(program.fingerprint().size(), 64u);
  ASSERT_EQ(program.inputs_size(), 1);
  EXPECT_EQ(program.inputs(0).name(), "x");
  EXPECT_EQ(program.inputs(0).type().dtype(), v1::DTYPE_F32);
  ASSERT_EQ(program.outputs_size(), 1);
  EXPECT_EQ(program.outputs(0).name(), "sum");
  EXPECT_EQ(program.outputs(0).type().shape(0).size(), 16);
  EXPECT_EQ(program.device(), "cpu:0");
  EXPECT_GT(program.instruction_count(), 0);
  EXPECT_TRUE(program.has_temporary_bytes());

  v1::GetProgramRequest get;
  get.set_fingerprint(program.fingerprint());
  v1::Program got;
  grpc::ClientContext context;
  ASSERT_TRUE(server.stub().GetProgram(&context, get, &got).ok());
  EXPECT_EQ(got.SerializeAsString(), program.SerializeAsString());
}

TEST(ProgramTest, NamesOfInputsAndNodesDoNotCount) {
  InProcessServer server;
  const v1::CompileResponse first = CompileOrFail(server, SmallAdd());
  v1::Graph renamed = SmallAdd();
  renamed.set_name("other");
  renamed.mutable_inputs(0)->set_name("left");
  renamed.mutable_nodes(0)->set_name("total");
  renamed.mutable_nodes(0)->set_inputs(0, "left");
  renamed.mutable_outputs(0)->set_value("total");
  const v1::CompileResponse second = CompileOrFail(server, renamed);
  EXPECT_EQ(second.source(), v1::CompileResponse::SOURCE_MEMORY);
  EXPECT_EQ(second.program().fingerprint(), first.program().fingerprint());
  EXPECT_EQ(second.program().inputs(0).name(), "left") << "the caller's own names";
  EXPECT_EQ(second.compile_time().seconds() + second.compile_time().nanos(), 0);
}

TEST(ProgramTest, OptionsMakeAnotherProgram) {
  InProcessServer server;
  v1::CompileOptions row_major;
  row_major.set_order(v1::MEMORY_ORDER_ROW_MAJOR);
  v1::CompileOptions device;
  device.set_device("cpu:0");
  const std::string fingerprint = CompileOrFail(server, LargeSum()).program().fingerprint();
  EXPECT_NE(CompileOrFail(server, LargeSum(), row_major).program().fingerprint(), fingerprint);
  EXPECT_NE(CompileOrFail(server, LargeSum(2)).program().fingerprint(), fingerprint);
  EXPECT_EQ(CompileOrFail(server, LargeSum(), device).source(), v1::CompileResponse::SOURCE_MEMORY)
      << "the default device by its name";
}

TEST(ProgramTest, CallsThatComeTogetherShareOneCompilation) {
  InProcessServer server({"compiler.threads=1"});
  constexpr int kClients = 8;
  BlockedCompiler blocked(server);
  std::atomic<int> compiled{0}, joined{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      const auto source = CompileOrFail(server, LargeSum()).source();
      compiled += source == v1::CompileResponse::SOURCE_COMPILED;
      joined += source == v1::CompileResponse::SOURCE_JOINED;
    });
  }
  EXPECT_TRUE(WaitFor([&] { return server.parts().cache->stats().joined == kClients - 1; }));
  blocked.Release();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(joined, kClients - 1);
  EXPECT_EQ(server.parts().cache->stats().compiled, 1);
}

TEST(ProgramTest, ARefusalReachesAllWhoJoined) {
  InProcessServer server({"compiler.threads=1"});
  BlockedCompiler blocked(server);
  v1::Graph wrong = SmallAdd();
  wrong.mutable_inputs(1)->mutable_type()->mutable_shape(0)->set_size(15);
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      v1::CompileRequest request;
      *request.mutable_graph() = wrong;
      v1::CompileResponse response;
      EXPECT_EQ(DetailOf(Compile(server.stub(), request, &response)).reason(), "SHAPE_MISMATCH");
    });
  }
  EXPECT_TRUE(WaitFor([&] { return server.parts().cache->stats().joined == 2; }));
  blocked.Release();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(server.parts().cache->stats().entries, 0) << "what is refused is not kept";
}

TEST(ProgramTest, WhoWaitsForACompilationKeepsTheDefaultDeadline) {
  InProcessServer server({"compiler.threads=1", "limits.default_deadline_ms=500"});
  BlockedCompiler blocked(server);
  v1::CompileRequest request;
  *request.mutable_graph() = LargeSum();
  v1::CompileResponse response;
  const grpc::Status status = Compile(server.stub(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(DetailOf(status).reason(), "DEADLINE_EXCEEDED");
  v1::ExecuteResponse result;
  const v1::ExecuteRequest run = RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  EXPECT_EQ(DetailOf(Execute(server.stub(), run, &result)).reason(), "DEADLINE_EXCEEDED");
  EXPECT_EQ(server.parts().cache->stats().abandoned, 2);
  EXPECT_EQ(server.parts().compile_pool->stats().queued, 0);
}

TEST(ProgramTest, ACompilationGoesOnForThoseWhoStillWait) {
  InProcessServer server({"compiler.threads=1"});
  BlockedCompiler blocked(server);
  v1::CompileRequest request;
  *request.mutable_graph() = LargeSum();
  grpc::ClientContext first_context;
  std::thread first([&] {
    v1::CompileResponse response;
    EXPECT_EQ(server.stub().Compile(&first_context, request, &response).error_code(), grpc::StatusCode::CANCELLED);
  });
  EXPECT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 1; }));
  std::thread second([&] {
    v1::CompileResponse response;
    EXPECT_TRUE(Compile(server.stub(), request, &response).ok());
    EXPECT_EQ(response.source(), v1::CompileResponse::SOURCE_JOINED);
  });
  EXPECT_TRUE(WaitFor([&] { return server.parts().cache->stats().joined == 1; }));
  first_context.TryCancel();
  first.join();
  EXPECT_EQ(server.parts().compile_pool->stats().queued, 1);
  blocked.Release();
  second.join();
}

TEST(ProgramTest, WhoCancelsWaitsForNoCompilation) {
  InProcessServer server({"compiler.threads=1"});
  BlockedCompiler blocked(server);
  v1::CompileRequest request;
  *request.mutable_graph() = LargeSum();
  grpc::ClientContext context;
  std::thread client([&] {
    v1::CompileResponse response;
    EXPECT_EQ(server.stub().Compile(&context, request, &response).error_code(), grpc::StatusCode::CANCELLED);
  });
  EXPECT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 1; }));
  context.TryCancel();
  client.join();
  server.WaitUntilIdle();
  EXPECT_EQ(server.parts().compile_pool->stats().queued, 0) << "nobody waits for it any more";
}

TEST(ProgramTest, TheCompilersQueueIsBounded) {
  InProcessServer server({"compiler.threads=1", "compiler.queue_length=1"});
  BlockedCompiler blocked(server);
  ASSERT_TRUE(server.parts().compile_pool->Submit(server::Caller().tenant, [] {}).ok());
  v1::CompileRequest request;
  *request.mutable_graph() = SmallAdd();
  v1::CompileResponse response;
  const grpc::Status status = Compile(server.stub(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const v1::ErrorDetail detail = DetailOf(status);
  EXPECT_EQ(detail.reason(), "QUEUE_FULL");
  EXPECT_EQ(detail.limit(), "compiler.queue_length");
  EXPECT_EQ(detail.limit_value(), 1);
  EXPECT_EQ(detail.actual_value(), 2);
}

TEST(ProgramTest, TheLeastRecentlyUsedProgramGoesFirst) {
  if (HasHostCuda()) GTEST_SKIP() << "its programs are not of one size";
  const std::vector<v1::Tensor> arguments = {FloatTensor(std::vector<float>(16, 1), {16})};
  InProcessServer probe;
  CompileOrFail(probe, LargeSum(1));
  const int64_t one = probe.parts().cache->stats().bytes;

  InProcessServer server({"program_cache.bytes=" + std::to_string(2 * one + one / 2)});
  const v1::ExecuteRequest first = WarmRequest(server.stub(), LargeSum(1), arguments);
  const v1::ExecuteRequest second = WarmRequest(server.stub(), LargeSum(2), arguments);
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(), first, &response).ok());
  const v1::ExecuteRequest third = WarmRequest(server.stub(), LargeSum(3), arguments);

  const grpc::Status evicted = Execute(server.stub(), second, &response);
  EXPECT_EQ(evicted.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(evicted).reason(), "PROGRAM_NOT_FOUND");
  EXPECT_TRUE(Execute(server.stub(), first, &response).ok());
  EXPECT_TRUE(Execute(server.stub(), third, &response).ok());
  EXPECT_EQ(server.parts().cache->stats().evictions, 1);
  EXPECT_LE(server.parts().cache->stats().bytes, 2 * one + one / 2);
}

TEST(ProgramTest, CollidingProgramsAreToldApart) {
  InProcessServer server({"testing.collide_fingerprints=true"});
  const std::vector<v1::Tensor> arguments = {FloatTensor(std::vector<float>(16, 1), {16})};
  std::vector<v1::ExecuteRequest> requests;
  for (const float scale : {1.0f, 2.0f, 3.0f}) {
    requests.push_back(WarmRequest(server.stub(), LargeSum(scale), arguments));
    requests.push_back(RequestOf(LargeSum(scale), arguments));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    v1::ExecuteResponse response;
    ASSERT_TRUE(Execute(server.stub(), requests[i], &response).ok());
    EXPECT_THAT(FloatsOf(response.results(0).tensor()), ::testing::Each(4096.0f * static_cast<float>(1 + i / 2)));
  }
  EXPECT_NE(requests[0].fingerprint(), requests[2].fingerprint()) << "clients see no collision";
  EXPECT_EQ(server.parts().cache->stats().compiled, 3);
}

TEST(ProgramTest, GraphsArePrintedAndParsed) {
  InProcessServer plain, server({"testing.print_and_parse=true"});
  const v1::CompileResponse compiled = CompileOrFail(server, LargeSum());
  EXPECT_EQ(compiled.program().SerializeAsString(), CompileOrFail(plain, LargeSum()).program().SerializeAsString());
  v1::Graph wrong = SmallAdd();
  wrong.mutable_inputs(1)->mutable_type()->mutable_shape(0)->set_size(15);
  v1::CompileRequest request;
  *request.mutable_graph() = wrong;
  v1::CompileResponse response;
  EXPECT_EQ(DetailOf(Compile(server.stub(), request, &response)).reason(), "SHAPE_MISMATCH") << "refused as ever";
}

TEST(ProgramTest, ExplainsByGraphAndByFingerprint) {
  InProcessServer server;
  v1::ExplainRequest request;
  *request.mutable_graph() = LargeSum();
  v1::ExplainResponse by_graph, by_fingerprint;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(server.stub().Explain(&context, request, &by_graph).ok());
  }
  EXPECT_THAT(by_graph.text(), HasSubstr("reduce"));
  EXPECT_THAT(by_graph.text(), HasSubstr("cpu:0"));
  request.set_fingerprint(CompileOrFail(server, LargeSum()).program().fingerprint());
  grpc::ClientContext context;
  ASSERT_TRUE(server.stub().Explain(&context, request, &by_fingerprint).ok());
  EXPECT_EQ(by_fingerprint.text(), by_graph.text());
}

// Two einsums, in the graph's own names, with the program found by graph or by fingerprint.
TEST(ProgramTest, ExplainTellsHowEinsumsAreContracted) {
  InProcessServer server;
  const auto chain = [](const std::string& first, const std::string& rows) {
    return GraphOf(absl::StrCat(R"(
      inputs { name: "a" type { dtype: DTYPE_F64 shape { )",
                                rows, R"( } shape { size: 20 } } }
      inputs { name: "b" type { dtype: DTYPE_F64 shape { size: 20 } shape { size: 3 } } }
      inputs { name: "c" type { dtype: DTYPE_F64 shape { size: 3 } shape { size: 5 } } }
      nodes { name: ")",
                                first, R"(" inputs: "a" inputs: "b" inputs: "c" extension { op {
        [type.googleapis.com/tensord.einsum.v1.Einsum] { equation: "ij,jk,kl->il" } } } }
      nodes { name: "sum" inputs: ")",
                                first, R"(" extension { op {
        [type.googleapis.com/tensord.einsum.v1.Einsum] { equation: "ij->" optimizer: OPTIMIZER_GREEDY } } } }
      outputs { name: "y" value: "sum" })"));
  };
  const auto explain = [&](const v1::ExplainRequest& request) {
    grpc::ClientContext context;
    v1::ExplainResponse response;
    const grpc::Status status = server.stub().Explain(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  v1::ExplainRequest request;
  request.set_fingerprint(CompileOrFail(server, chain("product", "size: 1000")).program().fingerprint());
  v1::ExplainResponse response = explain(request);
  ASSERT_EQ(response.contractions_size(), 2);
  const v1::ContractionPlan& plan = response.contractions(0);
  EXPECT_EQ(plan.node(), "product");
  ASSERT_EQ(plan.path_size(), 2) << "first the small matrices would cost more";
  EXPECT_THAT(plan.path(0).operands(), ElementsAre(0, 1));
  EXPECT_THAT(plan.path(1).operands(), ElementsAre(0, 1));
  EXPECT_EQ(plan.flops(), 2 * 1000 * 20 * 3 + 2 * 1000 * 3 * 5);
  EXPECT_EQ(plan.largest_intermediate(), 3000);
  EXPECT_EQ(plan.optimizer(), "auto");
  EXPECT_FALSE(plan.assumes_sizes());
  EXPECT_EQ(response.contractions(1).node(), "sum");
  EXPECT_EQ(response.contractions(1).path_size(), 0);
  EXPECT_EQ(response.contractions(1).optimizer(), "greedy");

  *request.mutable_graph() = chain("renamed", "size: 1000");
  response = explain(request);
  ASSERT_EQ(response.contractions_size(), 2);
  EXPECT_EQ(response.contractions(0).node(), "renamed");
  *request.mutable_graph() = chain("product", "symbol: \"n\"");
  response = explain(request);
  ASSERT_EQ(response.contractions_size(), 2);
  EXPECT_TRUE(response.contractions(0).assumes_sizes());
  EXPECT_EQ(response.contractions(0).largest_intermediate(), 64 * 3) << "as if the symbol were 64";
}

TEST(ProgramTest, ServerInfo) {
  InProcessServer server({"limits.rank=5", "cpu.executors=3"});
  v1::GetServerInfoRequest request;
  v1::ServerInfo info;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(server.stub().GetServerInfo(&context, request, &info).ok());
  }
  ASSERT_EQ(info.devices_size(), 1);
  EXPECT_EQ(info.devices(0).name(), "cpu:0");
  EXPECT_TRUE(info.devices(0).ready());
  EXPECT_EQ(info.devices(0).executors(), 3);
  EXPECT_GT(info.devices(0).memory_bytes(), 0);
  EXPECT_EQ(info.capabilities_size(), 0);
  int64_t rank = 0;
  for (const v1::Limit& limit : info.limits()) {
    if (limit.name() == "rank") rank = limit.value();
  }
  EXPECT_EQ(rank, 5);

  request.set_capabilities(true);
  grpc::ClientContext context;
  ASSERT_TRUE(server.stub().GetServerInfo(&context, request, &info).ok());
  bool adds_f32 = false, finds_nan_in_bool = false;
  for (const v1::Capability& capability : info.capabilities()) {
    for (const int dtype : capability.dtypes()) {
      adds_f32 |= capability.op() == "add" && dtype == v1::DTYPE_F32;
      finds_nan_in_bool |= capability.op() == "is_finite" && dtype == v1::DTYPE_BOOL;
    }
  }
  EXPECT_TRUE(adds_f32);
  EXPECT_FALSE(finds_nan_in_bool);
}

// A caller that leaves a compilation leaves it the graph.
TEST(ProgramTest, AGraphIsInFlightForAsLongAsItIsThere) {
  InProcessServer server({"compiler.threads=1"});
  const auto bytes = [&] { return server.parts().gate->snapshot().bytes; };
  BlockedCompiler blocked(server);
  v1::ExecuteRequest request = RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  v1::CompileRequest compile;
  *compile.mutable_graph() = LargeSum();
  const int64_t first_bytes = static_cast<int64_t>(request.ByteSizeLong());
  const int64_t second_bytes = static_cast<int64_t>(compile.ByteSizeLong());
  grpc::ClientContext first_context, second_context;
  std::thread first([&] {
    v1::ExecuteResponse response;
    EXPECT_EQ(server.stub().Execute(&first_context, request, &response).error_code(), grpc::StatusCode::CANCELLED);
  });
  ASSERT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 1; }));
  const int64_t key_bytes = bytes() - first_bytes;
  EXPECT_GT(key_bytes, 0) << "it is found by all that it computes";
  EXPECT_LT(key_bytes, first_bytes) << "once";
  std::thread second([&] {
    v1::CompileResponse response;
    EXPECT_EQ(server.stub().Compile(&second_context, compile, &response).error_code(), grpc::StatusCode::CANCELLED);
  });
  ASSERT_TRUE(WaitFor([&] { return server.parts().cache->stats().joined == 1; }));
  EXPECT_TRUE(WaitFor([&] { return bytes() == first_bytes + key_bytes + second_bytes; }));
  first_context.TryCancel();
  first.join();
  ASSERT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().calls == 1; }));
  EXPECT_EQ(bytes(), first_bytes + key_bytes + second_bytes) << "the other one waits for the first one's graph";
  second_context.TryCancel();
  second.join();
  EXPECT_TRUE(WaitFor([&] { return bytes() == 0; })) << "though the compiler has not come to it";
}

// Constants are there twice while a graph waits for the compiler: in the graph, and in what it is found by.
TEST(ProgramTest, WhatWaitsForTheCompilerCountsItsConstantsTwice) {
  constexpr int64_t kBytes = 100'000;
  InProcessServer server({"compiler.threads=1", "limits.in_flight_bytes=350000"});
  const auto bytes = [&] { return server.parts().gate->snapshot().bytes; };
  BlockedCompiler blocked(server);
  const auto compile = [&server](char salt, grpc::ClientContext* context) {
    v1::CompileRequest request;
    *request.mutable_graph() = LargeSum();
    v1::Tensor& value = *request.mutable_graph()->add_nodes()->mutable_constant()->mutable_value();
    request.mutable_graph()->mutable_nodes(5)->set_name("table");
    value.set_dtype(v1::DTYPE_F32);
    value.add_shape(kBytes / 4);
    value.set_data(std::string(kBytes, salt));
    v1::CompileResponse response;
    return server.stub().Compile(context, request, &response);
  };
  grpc::ClientContext first_context, second_context;
  std::thread first([&] { EXPECT_EQ(compile('a', &first_context).error_code(), grpc::StatusCode::CANCELLED); });
  ASSERT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 1; }));
  EXPECT_GE(bytes(), 2 * kBytes);
  second_context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  const grpc::Status refused = compile('b', &second_context);
  EXPECT_EQ(DetailOf(refused).limit(), "in_flight_bytes");
  EXPECT_GE(bytes(), 2 * kBytes);
  first_context.TryCancel();
  first.join();
  EXPECT_TRUE(WaitFor([&] { return bytes() == 0; }));
}

TEST(ProgramTest, AGraphOfAStreamIsInFlightForAsLongAsItIsThere) {
  InProcessServer server({"compiler.threads=1"});
  BlockedCompiler blocked(server);
  v1::ExecuteRequest request = RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  request.set_request_id(1);
  v1::CompileRequest compile;
  *compile.mutable_graph() = LargeSum();
  const auto bytes = [&] { return server.parts().gate->snapshot().bytes; };
  grpc::ClientContext context, stream_context;
  const auto stream = server.stub().ExecuteStream(&stream_context);
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 1; }));
  const int64_t first_bytes = bytes(), second_bytes = static_cast<int64_t>(compile.ByteSizeLong());
  EXPECT_GT(first_bytes, static_cast<int64_t>(request.ByteSizeLong()));
  std::thread second([&] {
    v1::CompileResponse response;
    EXPECT_TRUE(server.stub().Compile(&context, compile, &response).ok());
  });
  ASSERT_TRUE(WaitFor([&] { return server.parts().cache->stats().joined == 1; }));
  stream_context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  ASSERT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().calls == 1; }));
  EXPECT_TRUE(WaitFor([&] { return bytes() == first_bytes + second_bytes; }));
  blocked.Release();
  second.join();
}

}  // namespace
}  // namespace tensord
