// Runs a graph by gRPC's stubs alone, without the client library: the way for languages that have none.
//
//   raw_stubs TARGET
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstring>

#include "tensord/v1/compute.grpc.pb.h"

namespace v1 = tensord::v1;

int main(int argc, char** argv) {
  const auto channel = grpc::CreateChannel(argc > 1 ? argv[1] : "localhost:7070", grpc::InsecureChannelCredentials());
  const auto stub = v1::Compute::NewStub(channel);
  v1::ExecuteRequest request;
  v1::Graph& graph = *request.mutable_graph();
  v1::GraphInput& input = *graph.add_inputs();
  input.set_name("x");
  input.mutable_type()->set_dtype(v1::DTYPE_F64);
  input.mutable_type()->add_shape()->set_symbol("n");
  v1::Node& node = *graph.add_nodes();
  node.set_name("doubled");
  node.add_inputs("x");
  node.add_inputs("x");
  node.set_binary(v1::BINARY_OP_ADD);
  v1::GraphOutput& output = *graph.add_outputs();
  output.set_name("y");
  output.set_value("doubled");
  const double values[] = {0, 1, 2};
  v1::Tensor& argument = *request.add_arguments()->mutable_tensor();
  argument.set_dtype(v1::DTYPE_F64);
  argument.add_shape(3);
  argument.set_data(values, sizeof values);

  v1::ExecuteResponse response;
  grpc::ClientContext context;
  const grpc::Status status = stub->Execute(&context, request, &response);
  double results[3] = {};
  if (!status.ok() || response.results(0).tensor().data().size() != sizeof results) {
    std::fprintf(stderr, "%d: %s\n", status.error_code(), status.error_message().c_str());
    return 1;
  }
  std::memcpy(results, response.results(0).tensor().data().data(), sizeof results);
  std::printf("%g %g %g\n", results[0], results[1], results[2]);
  return results[2] == 4 ? 0 : 1;
}
