// Beside requests their replies, and what a compilation needs, count in what calls in progress may have.
#include <grpcpp/client_context.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/lifecycle/added_bytes.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"

namespace tensord {
namespace {

// Returns a graph for which Explain's answer is long.
v1::Graph LongChain() {
  v1::Graph graph = GraphOf(R"(
    name: "chain"
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 4 } } })");
  std::string former = "x";
  for (int i = 0; i < 300; ++i) {
    v1::Node* const node = graph.add_nodes();
    node->set_name(absl::StrCat("a_name_that_explain_repeats_", i));
    node->add_inputs(former);
    node->set_unary(i % 2 == 0 ? v1::UNARY_OP_TANH : v1::UNARY_OP_SIN);
    former = node->name();
  }
  v1::GraphOutput* const output = graph.add_outputs();
  output->set_name("y");
  output->set_value(former);
  return graph;
}

TEST(InFlightBytesTest, LargeOnesAreRefusedWhereThereIsNoRoom) {
  InProcessServer server({"limits.in_flight_bytes=100000"});
  v1::CompileRequest compiled;
  *compiled.mutable_graph() = LongChain();
  v1::CompileResponse program;
  grpc::ClientContext compiling;
  const grpc::Status compile = server.stub().Compile(&compiling, compiled, &program);
  ASSERT_TRUE(compile.ok()) << compile.error_message();
  v1::ExplainRequest request;
  request.set_fingerprint(program.program().fingerprint());
  const auto explain = [&](v1::ExplainResponse* response) {
    grpc::ClientContext context;
    return server.stub().Explain(&context, request, response);
  };
  v1::ExplainResponse response;
  server.WaitUntilIdle();  // the call before leaves a moment after its answer
  {
    const auto others = server::AddedBytes::Add(&server.parts().gate->bytes(), 95'000, "others");
    ASSERT_TRUE(others.ok());
    EXPECT_EQ(DetailOf(explain(&response)).reason(), "LIMIT_EXCEEDED");
  }
  const grpc::Status explained = explain(&response);
  EXPECT_TRUE(explained.ok()) << explained.error_message();
  EXPECT_GT(response.ByteSizeLong(), size_t{20'000}) << "else it tests nothing";
}

TEST(InFlightBytesTest, CompilationsOfManyEdgesAreRefusedWhereThereIsNoRoom) {
  InProcessServer server({"limits.in_flight_bytes=100000000"});
  v1::CompileRequest request;
  *request.mutable_graph() = GraphOf(R"(
    name: "wide"
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 1 } } }
    outputs { name: "y" value: "y" })");
  v1::Node* const node = request.mutable_graph()->add_nodes();
  node->set_name("y");
  for (int i = 0; i < 120'000; ++i) node->add_inputs("x");
  node->mutable_concatenate();
  const auto others = server::AddedBytes::Add(&server.parts().gate->bytes(), 1, "others");
  ASSERT_TRUE(others.ok());
  grpc::ClientContext context;
  v1::CompileResponse response;
  const v1::ErrorDetail detail = DetailOf(server.stub().Compile(&context, request, &response));
  EXPECT_EQ(detail.reason(), "LIMIT_EXCEEDED");
}

TEST(InFlightBytesTest, TensorsThatAreToBeKeptAreRefusedWhereThereIsNoRoom) {
  InProcessServer server({"limits.in_flight_bytes=1000000"});
  const SessionClient client(server);
  v1::ExecuteRequest request = client.Request(DoubleGraph());
  *request.add_arguments()->mutable_tensor() = FloatTensor({1, 2}, {2});
  Keep(&request, "kept");
  const auto execute = [&] {
    grpc::ClientContext context;
    v1::ExecuteResponse response;
    return server.stub().Execute(&context, request, &response);
  };
  server.WaitUntilIdle();
  {
    // There is room for the request, but not for what the session has to know meanwhile.
    const int64_t left = static_cast<int64_t>(request.ByteSizeLong()) + 300;
    const auto others = server::AddedBytes::Add(&server.parts().gate->bytes(), 1'000'000 - left, "others");
    ASSERT_TRUE(others.ok());
    EXPECT_EQ(DetailOf(execute()).reason(), "LIMIT_EXCEEDED");
  }
  const grpc::Status kept = execute();
  EXPECT_TRUE(kept.ok()) << kept.error_message();
}

}  // namespace
}  // namespace tensord
