// A program is shared by graphs that differ in their names only; each client reads of its own.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Two kernels, and sizes that only the arguments decide.
v1::Graph Distances(const std::string& x, const std::string& y, const std::string& difference,
                    const std::string& product) {
  return GraphOf("inputs { name: \"" + x + "\" type { dtype: DTYPE_F32 shape { symbol: \"n\" } } }\n" +
                 "inputs { name: \"" + y + "\" type { dtype: DTYPE_F32 shape { symbol: \"m\" } } }\n" +
                 "nodes { name: \"" + difference + "\" inputs: \"" + x + "\" inputs: \"" + y +
                 "\" binary: BINARY_OP_SUBTRACT }\n" + "nodes { name: \"" + product + "\" inputs: \"" + difference +
                 "\" inputs: \"" + difference +
                 "\" dot_general { lhs_contracting_dimensions: 0 rhs_contracting_dimensions: 0 } }\n" +
                 "outputs { name: \"result\" value: \"" + product + "\" }");
}

v1::Graph First() { return Distances("x", "y", "first_difference", "first_product"); }
v1::Graph Second() { return Distances("a", "b", "second_difference", "second_product"); }

v1::ExecuteRequest Profiled(const v1::Graph& graph, int64_t n, int64_t m) {
  v1::ExecuteRequest request = RequestOf(graph, {FloatTensor(std::vector<float>(static_cast<size_t>(n), 3), {n}),
                                                 FloatTensor(std::vector<float>(static_cast<size_t>(m), 1), {m})});
  request.set_profile(true);
  return request;
}

std::vector<std::string> NodesOf(const v1::ExecuteResponse& response) {
  std::vector<std::string> nodes;
  for (const v1::SegmentProfile& segment : response.stats().segments()) {
    nodes.insert(nodes.end(), segment.nodes().begin(), segment.nodes().end());
  }
  return nodes;
}

TEST(NamesTest, AProfileNamesTheNodesOfTheGraphThatWasSent) {
  InProcessServer server;
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(), Profiled(First(), 4, 4), &response).ok());
  EXPECT_THAT(NodesOf(response), ElementsAre("first_difference", "first_product"));
  ASSERT_TRUE(Execute(server.stub(), Profiled(Second(), 4, 4), &response).ok());
  EXPECT_THAT(NodesOf(response), ElementsAre("second_difference", "second_product"));
  EXPECT_FALSE(response.stats().has_compile_time());
  EXPECT_EQ(FloatsOf(response.results(0).tensor())[0], 16);
  EXPECT_EQ(server.parts().cache->stats().entries, 1);
}

TEST(NamesTest, ARefusalNamesTheNodeOfTheGraphThatWasSent) {
  InProcessServer server;
  v1::ExecuteResponse response;
  ASSERT_TRUE(Execute(server.stub(), Profiled(First(), 4, 4), &response).ok());
  grpc::Status status = Execute(server.stub(), Profiled(Second(), 4, 5), &response);
  EXPECT_EQ(DetailOf(status).reason(), "SHAPE_MISMATCH") << status.error_message();
  EXPECT_EQ(DetailOf(status).node(), "second_difference");
  EXPECT_THAT(status.error_message(), HasSubstr("(node \"second_difference\", op subtract)"));
  EXPECT_THAT(status.error_message(), Not(HasSubstr("first")));
}

TEST(NamesTest, ARefusalNamesTheOpThatWasSentAndNotWhatItIsMadeOf) {
  InProcessServer server;
  const v1::Graph graph = GraphOf(R"(
    inputs { name: "a" type { dtype: DTYPE_F32 shape { size: 2 } shape { size: 2 } shape { symbol: "b" } } }
    nodes { name: "inverse" inputs: "a" extension { op { type_url: "type.googleapis.com/tensord.linalg.v1.Inverse" } } }
    outputs { name: "inverse" value: "inverse" })");
  v1::ExecuteResponse response;
  // Two matrices, of which the second has rows of ones.
  const v1::Tensor matrices = FloatTensor({1, 0, 0, 1, 1, 1, 1, 1}, {2, 2, 2});
  const grpc::Status status = Execute(server.stub(), RequestOf(graph, {matrices}), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(status).reason(), "MATRIX_SINGULAR") << status.error_message();
  EXPECT_EQ(DetailOf(status).node(), "inverse");
  EXPECT_EQ(DetailOf(status).op(), "tensord.linalg.v1.Inverse");
  EXPECT_THAT(status.error_message(), HasSubstr("batch index [1] is singular: pivot 2"));
  EXPECT_THAT(status.error_message(), HasSubstr("LAPACK's info is 2"));
}

TEST(NamesTest, AnExplanationNamesTheNodesOfTheGraphThatWasSent) {
  InProcessServer server;
  const auto explain = [&server](const v1::Graph& graph) {
    v1::ExplainRequest request;
    *request.mutable_graph() = graph;
    v1::ExplainResponse response;
    grpc::ClientContext context;
    const grpc::Status status = server.stub().Explain(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.text();
  };
  EXPECT_THAT(explain(First()), HasSubstr("first_difference"));
  const std::string second = explain(Second());
  EXPECT_THAT(second, HasSubstr("second_difference"));
  EXPECT_THAT(second, Not(HasSubstr("first")));
  EXPECT_EQ(server.parts().cache->stats().entries, 1) << "what was compiled to be explained is not kept";
}

}  // namespace
}  // namespace tensord
