// Derivatives by RPC.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

grpc::Status Differentiate(InProcessServer& server, const v1::DifferentiateRequest& request,
                           v1::DifferentiateResponse* response) {
  grpc::ClientContext context;
  return server.stub().Differentiate(&context, request, response);
}

v1::DifferentiateRequest RequestFor(v1::DifferentiateRequest::Mode mode) {
  v1::DifferentiateRequest request;
  *request.mutable_graph() = SmallAdd();
  request.set_mode(mode);
  return request;
}

TEST(DifferentiateTest, GivesAGraphThatRunsAndIsTheSameAgain) {
  InProcessServer server;
  v1::DifferentiateResponse first, second;
  const v1::DifferentiateRequest request = RequestFor(v1::DifferentiateRequest::MODE_VJP);
  const grpc::Status status = Differentiate(server, request, &first);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_TRUE(Differentiate(server, request, &second).ok());
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());
  ASSERT_EQ(first.graph().inputs_size(), request.graph().inputs_size() + 1);
  ASSERT_EQ(first.graph().outputs_size(), request.graph().inputs_size());

  std::vector<v1::Tensor> arguments(2, FloatTensor(std::vector<float>(16, 1), {16}));
  arguments.push_back(FloatTensor(std::vector<float>(16, 3), {16}));
  v1::ExecuteResponse response;
  const grpc::Status run = Execute(server.stub(), RequestOf(first.graph(), arguments), &response);
  ASSERT_TRUE(run.ok()) << run.error_message();
  ASSERT_EQ(response.results_size(), 2);
  for (const v1::Result& result : response.results()) EXPECT_EQ(result.tensor().data(), arguments[2].data());
}

// A constant that says no order is read as the compilation of the graph would read it.
TEST(DifferentiateTest, ReadsConstantsInTheOrderOfTheRequest) {
  InProcessServer server;
  v1::DifferentiateRequest request;
  request.set_mode(v1::DifferentiateRequest::MODE_VJP);
  v1::Graph& graph = *request.mutable_graph();
  v1::GraphInput& x = *graph.add_inputs();
  x.set_name("x");
  x.mutable_type()->set_dtype(v1::DTYPE_F32);
  for (int size : {2, 3}) x.mutable_type()->add_shape()->set_size(size);
  v1::Node& constant = *graph.add_nodes();
  constant.set_name("c");
  *constant.mutable_constant()->mutable_value() = FloatTensor({0, 1, 2, 3, 4, 5}, {2, 3});
  constant.mutable_constant()->mutable_value()->clear_order();
  v1::Node& product = *graph.add_nodes();
  product.set_name("y");
  product.add_inputs("x");
  product.add_inputs("c");
  product.set_binary(v1::BINARY_OP_MULTIPLY);
  v1::GraphOutput& output = *graph.add_outputs();
  output.set_name("y");
  output.set_value("y");
  for (v1::MemoryOrder order : {v1::MEMORY_ORDER_ROW_MAJOR, v1::MEMORY_ORDER_COLUMN_MAJOR}) {
    request.set_order(order);
    v1::DifferentiateResponse derivative;
    ASSERT_TRUE(Differentiate(server, request, &derivative).ok());
    v1::Tensor arguments[2];
    for (v1::Tensor& one : arguments) {
      one = FloatTensor(std::vector<float>(6, 1), {2, 3});
      one.set_order(order);
    }
    v1::ExecuteRequest run = RequestOf(derivative.graph(), {arguments[0], arguments[1]});
    run.mutable_options()->set_order(order);
    v1::ExecuteResponse response;
    const grpc::Status status = Execute(server.stub(), run, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.results(0).tensor().data(), constant.constant().value().data()) << order;
  }
}

TEST(DifferentiateTest, RefusesAGraphWhoseDerivativeIsTooLarge) {
  InProcessServer server({"limits.graph_nodes=2"});
  v1::DifferentiateRequest request = RequestFor(v1::DifferentiateRequest::MODE_VJP);
  request.mutable_graph()->mutable_nodes(0)->set_binary(v1::BINARY_OP_POW);
  v1::DifferentiateResponse response;
  const grpc::Status status = Differentiate(server, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(status).limit(), "graph_nodes");
}

// Nobody gets a graph that the same server would refuse.
TEST(DifferentiateTest, RefusesADerivativeOfMoreBytesThanAGraphMayHave) {
  const v1::DifferentiateRequest request = RequestFor(v1::DifferentiateRequest::MODE_VJP);
  const std::string bytes = std::to_string(request.graph().ByteSizeLong());
  InProcessServer server({"limits.graph_bytes=" + bytes});
  v1::DifferentiateResponse response;
  const grpc::Status status = Differentiate(server, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(DetailOf(status).limit(), "graph_bytes");
}

TEST(DifferentiateTest, RefusesWithDetail) {
  InProcessServer server;
  v1::DifferentiateResponse response;
  v1::DifferentiateRequest request = RequestFor(v1::DifferentiateRequest::MODE_JVP);
  request.add_wrt("nobody");
  const grpc::Status unknown = Differentiate(server, request, &response);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf(unknown).reason(), "VALUE_UNKNOWN");
  EXPECT_THAT(unknown.error_message(), HasSubstr("nobody"));
  const grpc::Status unset = Differentiate(server, RequestFor(v1::DifferentiateRequest::MODE_UNSPECIFIED), &response);
  EXPECT_EQ(DetailOf(unset).reason(), "ATTRIBUTE_INVALID");
  request.clear_wrt();
  request.mutable_graph()->mutable_nodes(0)->set_inputs(0, "nobody");
  const grpc::Status wrong = Differentiate(server, request, &response);
  EXPECT_EQ(DetailOf(wrong).node(), request.graph().nodes(0).name());
}

}  // namespace
}  // namespace tensord
