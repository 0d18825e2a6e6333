// Programs that are compiled for the sizes of their arguments: on the compile pool, never by those who run.
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/einsum/v1/einsum.pb.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A chain of three matrices, in an order that is chosen by their sizes.
v1::Graph Chain() {
  v1::Graph graph = GraphOf(R"(
    inputs { name: "a" type { dtype: DTYPE_F32 shape { symbol: "i" } shape { symbol: "j" } } }
    inputs { name: "b" type { dtype: DTYPE_F32 shape { symbol: "j" } shape { symbol: "k" } } }
    inputs { name: "c" type { dtype: DTYPE_F32 shape { symbol: "k" } shape { symbol: "l" } } }
    nodes { name: "product" inputs: "a" inputs: "b" inputs: "c" extension { } }
    outputs { name: "product" value: "product" })");
  einsum::v1::Einsum einsum;
  einsum.set_equation("ij,jk,kl->il");
  graph.mutable_nodes(0)->mutable_extension()->mutable_op()->PackFrom(einsum);
  return graph;
}

v1::Tensor Ones(int64_t rows, int64_t columns) {
  return FloatTensor(std::vector<float>(static_cast<size_t>(rows * columns), 1), {rows, columns});
}

v1::ExecuteRequest ChainOf(int64_t n) { return RequestOf(Chain(), {Ones(2, n), Ones(n, 3), Ones(3, 2)}); }

struct SizesTest : ::testing::Test {
  static BindingStats::Counts CountsOf(InProcessServer& server) {
    return server.parts().bindings.stats->counts(SizedKind::kProgram);
  }
  // OK where the result is right.
  static grpc::Status Run(InProcessServer& server, int64_t n, grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    v1::ExecuteResponse response;
    const grpc::Status status = server.stub().Execute(context == nullptr ? &own : context, ChainOf(n), &response);
    if (status.ok()) {
      EXPECT_THAT(FloatsOf(response.results(0).tensor()), Each(static_cast<float>(3 * n)));
    }
    return status;
  }
};

TEST_F(SizesTest, NobodyWhoRunsWaitsForACompilation) {
  InProcessServer server({"compiler.threads=1", "cpu.executors=1"});
  ASSERT_TRUE(Run(server, 4).ok());
  v1::ExecuteResponse other;
  ASSERT_TRUE(
      Execute(server.stub(), RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})}), &other).ok());
  BlockedCompiler blocked(server);
  std::future<grpc::Status> maker = std::async(std::launch::async, [&] { return Run(server, 5); });
  ASSERT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 1; }));
  std::future<grpc::Status> joined = std::async(std::launch::async, [&] { return Run(server, 5); });
  ASSERT_TRUE(WaitFor([&] { return CountsOf(server).events[BindingStats::kJoined] == 1; }));

  // Known sizes and other programs go by, on the only executor.
  EXPECT_TRUE(Run(server, 4).ok());
  EXPECT_TRUE(
      Execute(server.stub(), RequestOf(LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})}), &other).ok());
  EXPECT_EQ(server.executor().stats().running, 0);
  EXPECT_EQ(server.executor().stats().queued, 0);

  // Waiting callers may give up; the compilation goes on.
  grpc::ClientContext late;
  late.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  EXPECT_EQ(Run(server, 5, &late).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_in_flight", "Execute") == 2; })) << "it is not held";
  const int64_t before = CountsOf(server).events[BindingStats::kJoined];
  grpc::ClientContext cancelled;
  std::future<grpc::Status> leaving = std::async(std::launch::async, [&] { return Run(server, 5, &cancelled); });
  ASSERT_TRUE(WaitFor([&] { return CountsOf(server).events[BindingStats::kJoined] == before + 1; }));
  cancelled.TryCancel();
  EXPECT_EQ(leaving.get().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_in_flight", "Execute") == 2; })) << "likewise";

  blocked.Release();
  EXPECT_TRUE(maker.get().ok());
  EXPECT_TRUE(joined.get().ok());
  const BindingStats::Counts counts = CountsOf(server);
  EXPECT_THAT(counts.events, ElementsAre(1, 2, before + 1, 0, 0)) << "found, made, joined, refused, evicted";
  EXPECT_EQ(counts.entries, 2);
  EXPECT_GT(counts.bytes, 0);
  EXPECT_EQ(server.Metric("tensord_binding_entries", "program"), 2);
}

TEST_F(SizesTest, TheirTimeIsOneOfCompiling) {
  InProcessServer server;
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(), ChainOf(4), &response).ok());
  ASSERT_TRUE(Execute(server.stub(), ChainOf(5), &response).ok());
  EXPECT_TRUE(response.stats().has_compile_time()) << "the program is there, that of these sizes was not";
  ASSERT_TRUE(Execute(server.stub(), ChainOf(5), &response).ok());
  EXPECT_FALSE(response.stats().has_compile_time());
}

TEST_F(SizesTest, AsManyAreKeptAsTheSettingsSay) {
  for (const char* setting : {"program_cache.size_sets=2", "program_cache.size_set_bytes=0"}) {
    InProcessServer server({setting});
    for (const int64_t n : {4, 5, 6, 7}) ASSERT_TRUE(Run(server, n).ok());
    const int64_t kept = std::string(setting) == "program_cache.size_sets=2" ? 2 : 1;
    EXPECT_EQ(CountsOf(server).entries, kept) << setting;
    EXPECT_EQ(CountsOf(server).events[BindingStats::kEvicted], 4 - kept);
    ASSERT_TRUE(Run(server, 7).ok());
    ASSERT_TRUE(Run(server, 4).ok());
    EXPECT_EQ(CountsOf(server).events[BindingStats::kFound], 1);
    EXPECT_EQ(CountsOf(server).events[BindingStats::kMade], 5);
  }
}

TEST_F(SizesTest, AFullCompilerRefusesNewSizesAlone) {
  InProcessServer server({"compiler.threads=1", "compiler.queue_length=1"});
  ASSERT_TRUE(Run(server, 4).ok());
  {
    BlockedCompiler blocked(server);
    std::future<grpc::Status> queued = std::async(std::launch::async, [&] { return Run(server, 5); });
    ASSERT_TRUE(WaitFor([&] { return server.parts().compile_pool->stats().queued == 1; }));
    const grpc::Status full = Run(server, 6);
    EXPECT_EQ(DetailOf(full).reason(), "QUEUE_FULL") << full.error_message();
    EXPECT_EQ(DetailOf(full).limit(), "compiler.queue_length");
    EXPECT_TRUE(Run(server, 4).ok());
    blocked.Release();
    EXPECT_TRUE(queued.get().ok());
  }
  EXPECT_TRUE(Run(server, 6).ok());
}

TEST_F(SizesTest, SizesThatDoNotFitAreRefusedInTheGraphsNames) {
  InProcessServer server;
  v1::Graph graph = Chain();
  graph.mutable_inputs(1)->mutable_type()->mutable_shape(0)->set_symbol("m");  // which has to be j
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(), RequestOf(graph, {Ones(2, 4), Ones(4, 3), Ones(3, 2)}), &response).ok());
  v1::Graph renamed = graph;
  renamed.mutable_nodes(0)->set_name("other");
  renamed.mutable_outputs(0)->set_value("other");
  const grpc::Status status =
      Execute(server.stub(), RequestOf(renamed, {Ones(2, 4), Ones(5, 3), Ones(3, 2)}), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf(status).reason(), "SHAPE_MISMATCH") << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("(node \"other\", op tensord.einsum.v1.Einsum)"));
  EXPECT_EQ(server.parts().cache->stats().entries, 1);
}

}  // namespace
}  // namespace tensord
