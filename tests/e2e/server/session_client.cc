#include "tests/e2e/server/session_client.h"

#include "gtest/gtest.h"

namespace tensord {

std::string ReasonOf(const grpc::Status& status) { return status.ok() ? "OK" : DetailOf(status).reason(); }

v1::Graph DoubleGraph() {
  return GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { symbol: "n" } } }
    nodes { name: "y" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "y" value: "y" })");
}

void Keep(v1::ExecuteRequest* request, const std::string& handle, v1::ResultOption::Delivery delivery) {
  v1::ResultOption* option = request->add_results();
  option->set_delivery(delivery);
  option->set_handle(handle);
}

void AddHandle(v1::ExecuteRequest* request, const std::string& handle) { request->add_arguments()->set_handle(handle); }

void AddDonated(v1::ExecuteRequest* request, const std::string& handle) {
  request->add_arguments()->set_donated_handle(handle);
}

SessionClient::SessionClient(InProcessServer& server) : server_(server) {
  grpc::ClientContext context;
  v1::Session session;
  const grpc::Status status = server.stub().OpenSession(&context, v1::OpenSessionRequest(), &session);
  EXPECT_TRUE(status.ok()) << status.error_message();
  id_ = session.id();
}

v1::ExecuteRequest SessionClient::Request(const v1::Graph& graph) const {
  v1::ExecuteRequest request;
  *request.mutable_graph() = graph;
  request.set_session(id_);
  return request;
}

std::string SessionClient::Run(const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
  v1::ExecuteResponse unused;
  return ReasonOf(Execute(server_.stub(), request, response == nullptr ? &unused : response));
}

std::string SessionClient::Put(const std::string& handle, const std::vector<float>& values) {
  v1::ExecuteRequest request = Request(GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { symbol: "n" } } } outputs { name: "x" value: "x" })"));
  *request.add_arguments()->mutable_tensor() = FloatTensor(values, {static_cast<int64_t>(values.size())});
  Keep(&request, handle);
  return Run(request);
}

std::vector<float> SessionClient::Get(const std::string& handle) {
  v1::ExecuteRequest request = Request(GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { symbol: "n" } } } outputs { name: "x" value: "x" })"));
  AddHandle(&request, handle);
  v1::ExecuteResponse response;
  return Run(request, &response) == "OK" ? FloatsOf(response.results(0).tensor()) : std::vector<float>();
}

std::vector<std::string> SessionClient::Delete(const std::vector<std::string>& handles) {
  v1::DeleteTensorsRequest request;
  request.set_session(id_);
  for (const std::string& handle : handles) request.add_handles(handle);
  v1::DeleteTensorsResponse response;
  grpc::ClientContext context;
  const grpc::Status status = server_.stub().DeleteTensors(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return {response.missing().begin(), response.missing().end()};
}

std::string SessionClient::Close() {
  v1::CloseSessionRequest request;
  request.set_session(id_);
  v1::CloseSessionResponse response;
  grpc::ClientContext context;
  return ReasonOf(server_.stub().CloseSession(&context, request, &response));
}

bool NothingIsLeft(InProcessServer& server) {
  return WaitFor([&] {
    const auto devices = server.parts().sessions->stats().devices;
    const auto cpu = devices.find("cpu:0");
    return cpu == devices.end() || (cpu->second.bytes == 0 && cpu->second.tensors == 0);
  });
}

}  // namespace tensord
