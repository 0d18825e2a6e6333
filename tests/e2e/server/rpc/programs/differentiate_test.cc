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
