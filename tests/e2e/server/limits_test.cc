// Every limit that GetServerInfo lists has its line here. Of a limit on graphs that is a case: what goes beyond it is
// refused, and the refusal's detail names the limit, its value and the request's. Of the others it says where to look:
// that a line is there is all that can be forced.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {
namespace {

// An input of n + 1 elements, and a size that adds up two terms.
v1::Graph NestedSize() {
  return GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape {
      binary { kind: KIND_ADD lhs { symbol: "n" } rhs { size: 1 } } } } }
    outputs { name: "y" value: "x" })");
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
      {"graph_nodes", 0, SmallAdd(), 1},
      {"graph_outputs", 0, SmallAdd(), 1},
      {"name_bytes", 2, SmallAdd(), 3},
      {"rank", 0, SmallAdd(), 1},
      {"tensor_bytes", 3, LargeSum(), 4},
  };
}

// Limits that refuse elsewhere, or that refuse nothing.
std::map<std::string, std::string> OtherLimits() {
  return {
      {"chunk_bytes", "TensorStreamTest"},
      {"compiler.queue_length", "ProgramTest"},
      {"cpu.memory_bytes", "SchedulingTest"},
      {"cpu.queue_length", "SchedulingTest, QueueTest"},
      {"default_deadline_ms", "a default, no bound"},
      {"in_flight_bytes", "QueueTest"},
      {"message_bytes", "gRPC itself refuses, which knows no detail: ExecuteTest"},
      {"metadata_bytes", "gRPC itself refuses, which knows no detail: MetadataTest"},
      {"profile_ms", "AdminTest"},
      {"profile_samples_per_second", "AdminTest"},
      {"profiles", "AdminTest"},
      {"program_cache.bytes", "makes room by forgetting"},
      {"program_cache.disk_bytes", "makes room by forgetting"},
      {"response_bytes", "ExecuteResponseTest"},
      {"scheduling.tenant_requests_per_second", "SchedulingTest"},
      {"sessions.count", "SessionStoreTest"},
      {"sessions.device_bytes", "SessionStoreTest, SessionTest"},
      {"sessions.handles", "SessionStoreTest"},
      {"sessions.max_lease_ms", "shortens what is asked for"},
      {"sessions.stream_bytes", "ExecuteStreamTest"},
      {"sessions.stream_requests", "ExecuteStreamTest"},
      {"sessions.tenant_bytes", "SessionStoreTest, SessionTest"},
      {"sessions.tenant_count", "SessionStoreTest"},
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

TEST(LimitsTest, EveryLimitHasItsCase) {
  InProcessServer server;
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
  std::set<std::string> listed, covered;
  for (const v1::Limit& limit : info.limits()) listed.insert(limit.name());
  for (const GraphCase& c : GraphCases()) covered.insert(c.limit);
  for (const auto& [name, where] : OtherLimits()) covered.insert(name);
  EXPECT_EQ(listed, covered) << "a limit that is added needs a test that goes beyond it, and a line here that names it";
}

}  // namespace
}  // namespace tensord
