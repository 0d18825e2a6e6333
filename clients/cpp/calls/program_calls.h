#ifndef TENSORD_CLIENTS_CPP_CALLS_PROGRAM_CALLS_H_
#define TENSORD_CLIENTS_CPP_CALLS_PROGRAM_CALLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clients/cpp/calls/compiled_programs.h"
#include "grpcpp/channel.h"
#include "tensord/connect_options.h"
#include "tensord/execute_options.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord::client {

// Checks that a graph fits into a message: INVALID_ARGUMENT. gRPC would end the process at one that does not.
absl::Status CheckSize(const v1::Graph& graph);

// Calls about programs, with the graphs and fingerprints that they brought. Shared by a client and its pipelines.
// Thread-safe; calls block, and are made again if no server answered.
class ProgramCalls {
 public:
  ProgramCalls(const std::shared_ptr<grpc::Channel>& channel, ConnectOptions options);

  // An empty `route` is the program's own.
  absl::StatusOr<v1::CompileResponse> Compile(v1::CompileRequest request, absl::Time deadline,
                                              const std::string& route = "");
  absl::StatusOr<v1::Program> Get(absl::string_view fingerprint, absl::Time deadline, absl::string_view route);
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request, absl::Time deadline);
  absl::StatusOr<v1::DifferentiateResponse> Differentiate(const v1::DifferentiateRequest& request, absl::Time deadline);

  // Returns the fingerprint of a program on the server behind `route`, after compiling it there if it is unknown and
  // this client has its graph.
  absl::StatusOr<std::string> MakeKnown(const std::string& fingerprint, absl::Time deadline, const std::string& route);

  CompiledPrograms& compiled() { return compiled_; }

 private:
  const ConnectOptions options_;
  const std::unique_ptr<v1::Compute::Stub> stub_;
  CompiledPrograms compiled_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CALLS_PROGRAM_CALLS_H_
