#ifndef TENSORD_CLIENTS_CPP_CLIENT_H_
#define TENSORD_CLIENTS_CPP_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "clients/cpp/argument.h"
#include "clients/cpp/connect_options.h"
#include "clients/cpp/execute_answer.h"
#include "clients/cpp/execute_call.h"
#include "clients/cpp/execute_options.h"
#include "clients/cpp/health.h"
#include "clients/cpp/host_tensor.h"
#include "clients/cpp/pipeline.h"
#include "clients/cpp/program_calls.h"
#include "clients/cpp/result_sizes.h"
#include "clients/cpp/session_places.h"
#include "clients/cpp/shared_memory.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

struct ExecuteResult {
  std::vector<HostTensor> outputs;  // in the order of the program's outputs
  v1::ExecutionStats stats;
};

// A connection to one server. Thread-safe; calls block. A failed call is the server's canonical code and message, with
// GetErrorDetail for what the server knows beyond them. What got no answer and may run twice (all but calls that keep
// or donate tensors, or are about sessions) is made again, four times at most.
//
// Several servers may stand behind the target: calls of one program, and those of one session, carry one key for a
// balancer (docs/operate/balancing.md).
//
//   auto client = Client::Connect({.target = "localhost:7070"});
//   if (!client.ok()) return client.status();
//   auto result = (*client)->Execute(graph, {x, y});
class Client {
 public:
  // UNAVAILABLE where no server answers in time.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ConnectOptions options = {});
  ~Client();

  absl::StatusOr<v1::CompileResponse> Compile(const v1::Graph& graph, const ExecuteOptions& options = {});
  absl::StatusOr<v1::Program> GetProgram(absl::string_view fingerprint);
  // Why the program runs as it does, as text for people.
  absl::StatusOr<std::string> Explain(const v1::Graph& graph, const ExecuteOptions& options = {});
  // Of the program of that fingerprint, or of the one whose fingerprint begins so: four digits or more.
  absl::StatusOr<std::string> Explain(absl::string_view fingerprint);
  // In which order the graph's nodes that contract several operands, einsums, contract them, and what that costs.
  absl::StatusOr<std::vector<v1::ContractionPlan>> PlanContractions(const v1::Graph& graph,
                                                                    const ExecuteOptions& options = {});

  // Runs a graph, which is compiled where the server does not know it yet. Arguments in the order of its inputs.
  absl::StatusOr<ExecuteResult> Execute(const v1::Graph& graph, absl::Span<const HostTensor> arguments,
                                        const ExecuteOptions& options = {});
  // Runs a compiled program. Where the server does not know it (it has dropped it since, or is another one behind a
  // balancer) the graph goes along, once, if this client has compiled it: it keeps graphs of up to
  // CompiledPrograms::kMostBytes. Otherwise FAILED_PRECONDITION: compile again.
  absl::StatusOr<ExecuteResult> Execute(absl::string_view fingerprint, absl::Span<const HostTensor> arguments,
                                        const ExecuteOptions& options = {});
  // Runs either, with tensors that a session keeps among the arguments, and results that stay there.
  absl::StatusOr<ExecuteAnswer> Execute(const ExecuteCall& call);

  // Calls that follow each other without waiting. Returns at once; where there is no connection the first answer says
  // so.
  std::unique_ptr<Pipeline> OpenPipeline(PipelineOptions options = {});

  // A session, which keeps tensors on the server under handles of the client's choice until it is closed, or until
  // nothing has named it for as long as the lease. A lease of zero is the server's default,
  // and one beyond the server's longest is that one: Session.lease says how long it is.
  absl::StatusOr<v1::Session> OpenSession(absl::Duration lease = absl::ZeroDuration());
  absl::Status CloseSession(const std::string& session);
  // Tensors of any size, in chunks with checksums, straight from and into the tensor's memory, or through shared
  // memory. Where the connection breaks they go on from the byte that the other end has, by another call, within the
  // deadline.
  absl::Status PutTensor(const std::string& session, const std::string& handle, const HostTensor& tensor,
                         const ExecuteOptions& options = {});
  absl::StatusOr<HostTensor> GetTensor(const std::string& session, const std::string& handle,
                                       const ExecuteOptions& options = {});
  // Frees tensors of the session. The handles that were none.
  absl::StatusOr<std::vector<std::string>> DeleteTensors(const std::string& session,
                                                         absl::Span<const std::string> handles);

  absl::StatusOr<v1::ServerInfo> GetServerInfo(bool with_capabilities = false);
  // What grpc.health.v1 says of a service; empty: of the server. A service that the server does not know is
  // kServiceUnknown.
  absl::StatusOr<Health> CheckHealth(absl::string_view service = "");

  const std::string& target() const { return options_.target; }
  // Where tensors are sent from, and received into, without a copy; null where there is none.
  const std::shared_ptr<SharedMemory>& shared_memory() const { return shared_memory_; }

 private:
  struct Stubs;

  Client(ConnectOptions options, std::unique_ptr<Stubs> stubs);

  absl::StatusOr<v1::ExplainResponse> ExplainGraph(const v1::Graph& graph, const ExecuteOptions& options);
  absl::StatusOr<ExecuteResult> Execute(v1::ExecuteRequest request, absl::Span<const HostTensor> arguments,
                                        const ExecuteOptions& options);
  // With the graph where the program is not found.
  absl::StatusOr<ExecuteAnswer> Run(v1::ExecuteRequest request, absl::Span<const Argument> arguments,
                                    absl::Span<const ResultPlan> plans, const ExecuteOptions& options);
  // Through shared memory where there is some; repeated where it may be.
  absl::StatusOr<ExecuteAnswer> RunOnce(const v1::ExecuteRequest& request, absl::Span<const Argument> arguments,
                                        absl::Span<const ResultPlan> plans, const ExecuteOptions& options,
                                        absl::Time deadline, const std::string& route);

  absl::StatusOr<v1::ServerInfo> AskForInfo(bool with_capabilities, absl::Time deadline);
  // Connects to the server's shared memory, where there is some.
  void FindSharedMemory();
  absl::StatusOr<ExecuteAnswer> SendExecute(const v1::ExecuteRequest& request, absl::Span<const Argument> arguments,
                                            absl::Span<const ResultPlan> plans, const ExecuteOptions& options,
                                            absl::Time deadline, const std::string& route,
                                            const std::shared_ptr<SharedMemory>& memory);

  ConnectOptions options_;
  std::unique_ptr<Stubs> stubs_;
  SessionPlaces sessions_;
  std::shared_ptr<SharedMemory> shared_memory_;
  std::shared_ptr<SharedMemory> transfer_memory_;  // the same where PutTensor and GetTensor use it too; or null
  const std::shared_ptr<ResultSizes> result_sizes_ = std::make_shared<ResultSizes>();  // pipelines have it too
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CLIENT_H_
