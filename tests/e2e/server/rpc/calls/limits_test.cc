// Every limit that GetServerInfo lists has its line here. For a limit on graphs that is a case: an input beyond it is
// refused, and the refusal's detail names the limit, its value and the request's. So it is for most others. The rest
// have a line with the place of their test: only the line can be forced.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "gtest/gtest.h"
#include "tensord/einsum/v1/einsum.pb.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"

namespace tensord {
namespace {

// An input of n + 1 elements, and a size that adds up two terms.
v1::Graph NestedSize() {
  return GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape {
      binary { kind: KIND_ADD lhs { symbol: "n" } rhs { size: 1 } } } } }
    outputs { name: "y" value: "x" })");
}

v1::Graph TwoOutputs() {
  v1::Graph graph = SmallAdd();
  v1::GraphOutput* second = graph.add_outputs();
  second->set_name("again");
  second->set_value("sum");
  return graph;
}

// A product that saturates, which is one node of the client's and many of the compiler's.
v1::Graph SaturatingProduct() {
  return GraphOf(R"(
    algebra: ALGEBRA_MAX_PLUS
    inputs { name: "x" type { dtype: DTYPE_I32 shape { size: 16 } } }
    nodes { name: "sum" inputs: "x" inputs: "x" binary: BINARY_OP_MULTIPLY }
    outputs { name: "sum" value: "sum" })");
}

// A limit on graphs: the server's setting, and a graph that is one beyond it at least.
struct GraphCase {
  const char* limit;
  int64_t value;
  v1::Graph graph;
  int64_t actual;
};

std::vector<GraphCase> GraphCases() {
  return {
      {"constant_bytes", 3, LargeSum(), 4},
      {"dimension", 15, SmallAdd(), 16},
      {"expression_nesting", 1, NestedSize(), 2},
      {"expression_terms", 2, NestedSize(), 3},
      {"graph_bytes", 20, SmallAdd(), -1},
      {"graph_edges", 1, SmallAdd(), 2},
      {"graph_inputs", 1, SmallAdd(), 2},
      {"graph_nodes", 4, LargeSum(), 5},
      {"graph_nodes", 4, SaturatingProduct(), 20},
      {"graph_outputs", 1, TwoOutputs(), 2},
      {"name_bytes", 2, SmallAdd(), 3},
      {"rank", 1, LargeSum(), 2},
      {"tensor_bytes", 3, LargeSum(), 4},
  };
}

v1::ErrorDetail RunSum(InProcessServer& server) {
  v1::ExecuteResponse response;
  return DetailOf(
      Execute(server.stub(), RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})}), &response));
}

v1::ErrorDetail OpenTwoSessions(InProcessServer& server) {
  const SessionClient first(server);
  grpc::ClientContext context;
  v1::Session second;
  return DetailOf(server.stub().OpenSession(&context, v1::OpenSessionRequest(), &second));
}

// Keeps two tensors of one float.
v1::ErrorDetail KeepTwo(InProcessServer& server) {
  const SessionClient session(server);
  v1::ErrorDetail detail;
  for (const char* handle : {"a", "b"}) {
    v1::ExecuteRequest request = session.Request(DoubleGraph());
    *request.add_arguments()->mutable_tensor() = FloatTensor({1}, {1});
    Keep(&request, handle);
    v1::ExecuteResponse response;
    detail = DetailOf(Execute(server.stub(), request, &response));
  }
  return detail;
}

v1::ErrorDetail PutLargeChunk(InProcessServer& server) {
  const SessionClient session(server);
  constexpr int64_t kBytes = (1 << 20) + 4;
  grpc::ClientContext context;
  v1::PutTensorResponse response;
  const auto stream = server.stub().PutTensor(&context, &response);
  v1::PutTensorRequest header, chunk;
  header.mutable_header()->set_session(session.id());
  header.mutable_header()->set_handle("x");
  header.mutable_header()->set_dtype(v1::DTYPE_F32);
  header.mutable_header()->add_shape(kBytes / 4);
  chunk.mutable_chunk()->set_data(std::string(kBytes, '\0'));
  stream->Write(header);
  stream->Write(chunk);
  stream->WritesDone();
  return DetailOf(stream->Finish());
}

// Sends a stream of messages, which are as bounded as that of a call: beyond 1024 bytes, and not twice as much.
v1::ErrorDetail PutLargeHeader(InProcessServer& server) {
  const SessionClient session(server);
  grpc::ClientContext context;
  v1::PutTensorResponse response;
  const auto stream = server.stub().PutTensor(&context, &response);
  v1::PutTensorRequest header;
  header.mutable_header()->set_session(session.id());
  header.mutable_header()->set_handle(std::string(1500, 'x'));
  stream->Write(header);
  stream->WritesDone();
  return DetailOf(stream->Finish());
}

v1::ErrorDetail UploadTooMuch(InProcessServer& server) {
  const SessionClient session(server);
  grpc::ClientContext context;
  v1::PutTensorResponse response;
  const auto stream = server.stub().PutTensor(&context, &response);
  v1::PutTensorRequest header;
  header.mutable_header()->set_session(session.id());
  header.mutable_header()->set_handle("x");
  header.mutable_header()->set_dtype(v1::DTYPE_BOOL);
  for (int axis = 0; axis < 2; ++axis) header.mutable_header()->add_shape(int64_t{1} << 25);
  stream->Write(header);
  stream->WritesDone();
  return DetailOf(stream->Finish());
}

v1::ErrorDetail CallWithMuchMetadata(InProcessServer& server) {
  grpc::ClientContext context;
  context.AddMetadata("filler", std::string(1024, 'x'));
  v1::ServerInfo info;
  return DetailOf(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info));
}

v1::ErrorDetail CompileBehindOthers(InProcessServer& server) {
  const BlockedCompiler blocked(server);
  EXPECT_TRUE(server.parts().compile_pool->Submit(server::Caller().tenant, [] {}).ok());
  return RunSum(server);
}

// Returns the refusal of that request while another waits for the executor.
v1::ErrorDetail RunBehindAnother(InProcessServer& server, const v1::ExecuteRequest& request) {
  const v1::ExecuteRequest other =
      WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  BlockedExecutor blocked(server);
  std::thread waiting([&] {
    v1::ExecuteResponse response;
    EXPECT_TRUE(Execute(server.stub(), other, &response).ok());
  });
  EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
  v1::ExecuteResponse response;
  const v1::ErrorDetail detail = DetailOf(Execute(server.stub(), request, &response));
  blocked.Release();
  waiting.join();
  return detail;
}

v1::ErrorDetail RunOneMore(InProcessServer& server) {
  return RunBehindAnother(server, RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})}));
}

// A call alone always finds room.
v1::ErrorDetail RunManyBytes(InProcessServer& server) {
  return RunBehindAnother(server, RequestOf(DoubleGraph(), {FloatTensor(std::vector<float>(1000, 1), {1000})}));
}

v1::ErrorDetail ReadOneMore(InProcessServer& server) {
  const BlockedReaders blocked(server);
  EXPECT_TRUE(server.parts().readers->Submit("default", [] {}).taken());
  grpc::ClientContext context;
  v1::ExplainResponse response;
  return DetailOf(server.stub().Explain(&context, v1::ExplainRequest(), &response));
}

v1::ErrorDetail CallTwiceASecond(InProcessServer& server) {
  v1::ErrorDetail detail;
  // The third within the second at the latest; where the machine takes longer, others follow.
  for (int i = 0; i < 1000 && detail.limit().empty(); ++i) {
    grpc::ClientContext context;
    v1::ServerInfo info;
    detail = DetailOf(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info));
  }
  return detail;
}

v1::ErrorDetail Profile(InProcessServer& server, int64_t seconds, int32_t rate) {
  const auto admin =
      v1::Admin::NewStub(grpc::CreateChannel(server.daemon().admin_address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::CaptureProfileRequest request;
  request.mutable_duration()->set_seconds(seconds);
  request.set_samples_per_second(rate);
  v1::CaptureProfileResponse response;
  return DetailOf(admin->CaptureProfile(&context, request, &response));
}

v1::ErrorDetail ProfileWhileAnotherIsTaken(InProcessServer& server) {
  EXPECT_TRUE(server.parts().profiler->Start({.duration = absl::Seconds(60)}, [](const auto&) {}).ok());
  return Profile(server, 1, 99);
}

v1::ErrorDetail CompileDetail(InProcessServer& server, const v1::Graph& graph) {
  v1::CompileRequest request;
  *request.mutable_graph() = graph;
  v1::CompileResponse response;
  return DetailOf(Compile(server.stub(), request, &response));
}

// Outer products of tensors of rank 32, which is as much as an input has.
v1::ErrorDetail CompileHighRank(InProcessServer& server) {
  v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 } }
    nodes { name: "a" inputs: "x" inputs: "x" dot_general {} }
    nodes { name: "b" inputs: "a" inputs: "x" dot_general {} }
    outputs { name: "y" value: "b" })");
  for (int i = 0; i < 32; ++i) graph.mutable_inputs(0)->mutable_type()->add_shape()->set_size(1);
  return CompileDetail(server, graph);
}

// The sum of the products of that many operands, which all are one matrix, and have the same labels or each its own.
v1::ErrorDetail CompileEinsum(InProcessServer& server, int operands, bool same_labels,
                              einsum::v1::Einsum::Optimizer optimizer = einsum::v1::Einsum::OPTIMIZER_AUTO) {
  v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 1 } shape { size: 1 } } }
    nodes { name: "y" }
    outputs { name: "y" value: "y" })");
  einsum::v1::Einsum einsum;
  for (int i = 0; i < operands; ++i) {
    graph.mutable_nodes(0)->add_inputs("x");
    einsum::v1::Einsum::Labels* const labels = einsum.add_operands();
    labels->add_labels(same_labels ? 0 : 2 * i);
    labels->add_labels(same_labels ? 1 : 2 * i + 1);
  }
  einsum.mutable_output();
  einsum.set_optimizer(optimizer);
  graph.mutable_nodes(0)->mutable_extension()->mutable_op()->PackFrom(einsum);
  return CompileDetail(server, graph);
}

// Another limit: the settings, what goes beyond it, and what the refusal says.
struct OtherCase {
  std::string limit;
  std::vector<std::string> settings;
  std::function<v1::ErrorDetail(InProcessServer&)> exceed;
  int64_t value;
  int64_t actual;  // 0: it depends
};

std::vector<OtherCase> OtherCases() {
  return {
      {"chunk_bytes", {}, &PutLargeChunk, 1 << 20, (1 << 20) + 4},
      {"compiler.queue_length", {"compiler.threads=1", "compiler.queue_length=1"}, &CompileBehindOthers, 1, 2},
      {"cpu.memory_bytes", {"cpu.memory_bytes=100"}, &RunSum, 100, 0},
      {"cpu.queue_length", {"cpu.executors=1", "cpu.queue_length=1"}, &RunOneMore, 1, 2},
      {"cpu.tensor_bytes",
       {"limits.tensor_bytes=72057594037927936", "sessions.device_bytes=72057594037927936"},
       &UploadTooMuch,
       MostCpuTensorBytes(),
       int64_t{1} << 50},
      {"einsum_incidences",
       {},
       [](InProcessServer& server) { return CompileEinsum(server, 16'384, false); },
       int64_t{1} << 28,
       int64_t{1} << 29},
      {"einsum_operands",
       {},
       [](InProcessServer& server) { return CompileEinsum(server, 16'385, true); },
       16'384,
       16'385},
      {"einsum_optimal_operands",
       {},
       [](InProcessServer& server) { return CompileEinsum(server, 17, true, einsum::v1::Einsum::OPTIMIZER_OPTIMAL); },
       16,
       17},
      {"in_flight_bytes", {"cpu.executors=1", "limits.in_flight_bytes=1024"}, &RunManyBytes, 1024, 0},
      {"message_bytes", {"limits.message_bytes=1024"}, &PutLargeHeader, 1024, 0},
      {"metadata_bytes", {"limits.metadata_bytes=1024"}, &CallWithMuchMetadata, 1024, 0},
      {"profile_ms", {}, [](InProcessServer& server) { return Profile(server, 61, 99); }, 60'000, 61'000},
      {"profile_samples_per_second", {}, [](InProcessServer& server) { return Profile(server, 1, 1001); }, 1000, 1001},
      {"profiles", {}, &ProfileWhileAnotherIsTaken, 1, 2},
      {"run_operations", {"limits.run_operations=8"}, &RunSum, 8, 0},
      {"receive.queue_length", {"receive.queue_length=1"}, &ReadOneMore, 1, 2},
      {"scheduling.tenant_requests_per_second",
       {"scheduling.tenant_requests_per_second=1", "scheduling.tenant_burst=1"},
       &CallTwiceASecond,
       1,
       2},
      {"sessions.count", {"sessions.count=1"}, &OpenTwoSessions, 1, 2},
      {"sessions.device_bytes", {"sessions.device_bytes=1024"}, &KeepTwo, 1024, 2048},
      {"sessions.handles", {"sessions.handles=1"}, &KeepTwo, 1, 2},
      {"sessions.tenant_bytes", {"sessions.tenant_bytes=1024"}, &KeepTwo, 1024, 2048},
      {"sessions.tenant_count", {"sessions.tenant_count=1"}, &OpenTwoSessions, 1, 2},
      {"value_rank", {}, &CompileHighRank, 64, 96},
  };
}

// Limits that refuse elsewhere, or that refuse nothing.
std::map<std::string, std::string> OtherLimits() {
  return {
      {"admin.connections", "ConnectionsTest"},
      {"cancels_per_second", "HostilePeersTest"},
      {"connections", "ConnectionsTest"},
      {"connections_per_address", "ConnectionsTest"},
      {"default_deadline_ms", "a default, no bound"},
      {"expression_parts", "InferenceLimitsTest"},
      {"message_items", "EmptyFieldsTest"},
      {"program_cache.bytes", "makes room by forgetting"},
      {"program_cache.disk_bytes", "makes room by forgetting"},
      {"response_bytes", "ExecuteResponseTest"},
      {"sessions.max_lease_ms", "shortens what is asked for"},
      {"sessions.stream_bytes", "ExecuteStreamTest"},
      {"sessions.stream_requests", "ExecuteStreamTest"},
      {"shared_memory.bytes", "MemoryBrokerTest"},
      {"shared_memory.connections", "MemoryBrokerTest"},
      {"shared_memory.region_bytes", "MemoryBrokerTest"},
      {"shared_memory.regions", "RegionStoreTest"},
      {"shared_memory.tenant_bytes", "MemoryBrokerTest"},
      {"shared_memory.tenant_regions", "MemoryBrokerTest"},
      {"streams_per_connection", "further calls wait at the client"},
  };
}

TEST(LimitsTest, WhatIsBeyondALimitOfGraphsIsRefusedByItsName) {
  for (const GraphCase& c : GraphCases()) {
    SCOPED_TRACE(c.limit);
    InProcessServer server({std::string("limits.") + c.limit + "=" + std::to_string(c.value)});
    v1::CompileRequest request;
    *request.mutable_graph() = c.graph;
    v1::CompileResponse response;
    const grpc::Status status = Compile(server.stub(), request, &response);
    const v1::ErrorDetail detail = DetailOf(status);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(detail.limit(), c.limit) << status.error_message();
    EXPECT_EQ(detail.limit_value(), c.value);
    EXPECT_EQ(detail.actual_value(), c.actual < 0 ? static_cast<int64_t>(c.graph.ByteSizeLong()) : c.actual);
  }
}

TEST(LimitsTest, WhatIsBeyondAnotherLimitIsRefusedByItsName) {
  for (const OtherCase& c : OtherCases()) {
    if (HasHostCuda() && c.limit == std::string("cpu.tensor_bytes")) continue;  // it has cuda.tensor_bytes
    SCOPED_TRACE(c.limit);
    const TemporaryFolder folder;
    std::vector<std::string> settings = c.settings;
    settings.push_back("admin.listen=unix:" + folder.path() + "/admin");
    InProcessServer server(settings);
    const v1::ErrorDetail detail = c.exceed(server);
    EXPECT_EQ(detail.limit(), c.limit) << detail.ShortDebugString();
    EXPECT_EQ(detail.limit_value(), c.value);
    if (c.actual > 0) {
      EXPECT_EQ(detail.actual_value(), c.actual);
    } else {
      EXPECT_GT(detail.actual_value(), c.value);
    }
    EXPECT_EQ(server.Metric("tensord_limit", c.limit), static_cast<double>(c.value)) << "as /metrics has it";
  }
}

TEST(LimitsTest, EveryLimitHasItsCase) {
  InProcessServer server;
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
  std::set<std::string> listed, covered;
  for (const v1::Limit& limit : info.limits()) listed.insert(limit.name());
  for (const GraphCase& c : GraphCases()) covered.insert(c.limit);
  for (const OtherCase& c : OtherCases()) EXPECT_TRUE(covered.insert(c.limit).second) << c.limit;
  for (const auto& [name, where] : OtherLimits()) covered.insert(name);
  EXPECT_EQ(listed, covered) << "a limit that is added needs a test that goes beyond it, and a line here that names it";
}

}  // namespace
}  // namespace tensord
