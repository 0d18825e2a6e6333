// Runs a graph by gRPC's stubs alone, without the client library: the way for languages that have none.
//
//   raw_stubs TARGET
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstring>

#include "tensord/v1/compute.grpc.pb.h"

namespace v1 = tensord::v1;

// Doubles three numbers by a graph for vectors of any size.
constexpr char kRequest[] = R"(
  graph {
    inputs { name: "x" type { dtype: DTYPE_F64 shape { symbol: "n" } } }
    nodes { name: "doubled" inputs: "x" inputs: "x" binary: BINARY_OP_ADD }
    outputs { name: "y" value: "doubled" }
  }
  arguments { tensor { dtype: DTYPE_F64 shape: 3 } })";

int main(int argc, char** argv) {
  const auto channel = grpc::CreateChannel(argc > 1 ? argv[1] : "localhost:7070", grpc::InsecureChannelCredentials());
  const auto stub = v1::Compute::NewStub(channel);
  v1::ExecuteRequest request;
  google::protobuf::TextFormat::ParseFromString(kRequest, &request);
  const double values[] = {0, 1, 2};
  request.mutable_arguments(0)->mutable_tensor()->set_data(values, sizeof values);

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
