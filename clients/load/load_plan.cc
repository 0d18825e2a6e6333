#include "clients/load/load_plan.h"

#include <utility>

#include "clients/cpp/connection/routing.h"
#include "clients/cpp/wire/execute_wire.h"

namespace tensord::load {

absl::StatusOr<PreparedWorkload> Prepare(client::Client& client, const Workload& workload, double weight,
                                         const client::ExecuteOptions& options) {
  const absl::StatusOr<v1::CompileResponse> compiled = client.Compile(workload.graph, options);
  if (!compiled.ok()) return compiled.status();
  v1::ExecuteRequest request;
  request.set_fingerprint(compiled->program().fingerprint());
  request.set_priority(options.priority);
  absl::StatusOr<grpc::ByteBuffer> message =
      client::EncodeExecuteRequest(request, client::ToArguments(workload.arguments));
  if (!message.ok()) return message.status();
  return PreparedWorkload{.name = workload.name,
                          .weight = weight,
                          .request = *std::move(message),
                          .route = client::RouteOfProgram(workload.graph, client::ToCompileOptions(options))};
}

}  // namespace tensord::load
