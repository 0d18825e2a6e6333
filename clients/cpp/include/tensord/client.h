#ifndef TENSORD_CLIENT_H_
#define TENSORD_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "tensord/argument.h"
#include "tensord/connect_options.h"
#include "tensord/execute_answer.h"
#include "tensord/execute_call.h"
#include "tensord/execute_options.h"
#include "tensord/health.h"
#include "tensord/host_tensor.h"
#include "tensord/message_names.h"
#include "tensord/pipeline.h"
#include "tensord/session.h"
#include "tensord/shared_memory.h"
#include "tensord/started_call.h"

namespace tensord::client {

struct ExecuteResult {
  std::vector<HostTensor> outputs = {};  // in the order of the program's outputs
  ExecutionStats stats = {};
};

enum class DerivativeMode : uint8_t {
  kJvp = 1,   // adds an input for each wrt, its tangent, and has an output for each output, its tangent
  kVjp = 2,   // adds an input for each output, its cotangent, and has an output for each wrt, its cotangent
  kGrad = 3,  // of a graph of one output, a real number; has an output for each wrt
};

struct DerivativeOptions {
  DerivativeMode mode = DerivativeMode::kGrad;
  std::vector<std::string> wrt = {};  // names of inputs; empty: every one of a float or complex dtype, in order
  bool keep_outputs = false;          // the graph's own outputs come first
  // kVjp, kGrad: references to values ("x", "y:1") that the backward pass finds in memory, beside the graph's inputs.
  // It computes others again, shortly before it needs them. Empty: it finds all of them.
  std::vector<std::string> checkpoints = {};
  // The order of constants that say none, as ExecuteOptions::order has it where the graph is compiled.
  MemoryOrder order = MemoryOrder::kRowMajor;
  std::optional<absl::Duration> deadline = {};
};

struct SplitDerivative;  // tensord/messages.h

// Connection to a server. Thread-safe; calls block, but for those that begin with Start. A failed call has the server's
// canonical code and message; GetErrorDetail gives the details. A call without an answer is made again, four times at
// most, if it may run twice: calls that keep or donate tensors, or concern sessions, may not.
//
// Several servers may stand behind the target: all calls of a program, and all of a session, have one key for a
// balancer (docs/operate/balancing.md).
//
// The child of a fork must leave the client alone, which gRPC's threads have not followed: it may connect one of its
// own after exec, and must not destroy this one. In the parent nothing changes.
//
//   auto client = Client::Connect({.target = "localhost:7070"});
//   if (!client.ok()) return client.status();
//   auto result = (*client)->Execute(graph, {x, y});
class Client {
 public:
  // Connects to a server: UNAVAILABLE if none answers in time.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ConnectOptions options = {});
  ~Client();

  absl::StatusOr<v1::CompileResponse> Compile(const v1::Graph& graph, const ExecuteOptions& options = {});
  absl::StatusOr<v1::Program> GetProgram(absl::string_view fingerprint);
  // Explains how the server runs a graph, as text for people.
  absl::StatusOr<std::string> Explain(const v1::Graph& graph, const ExecuteOptions& options = {});
  // Explains a program by its fingerprint, or by the first digits of it, four or more.
  absl::StatusOr<std::string> Explain(absl::string_view fingerprint);
  // Plans the graph's einsums: the order in which each contracts its operands, and the cost.
  absl::StatusOr<std::vector<v1::ContractionPlan>> PlanContractions(const v1::Graph& graph,
                                                                    const ExecuteOptions& options = {});
  // Returns the derivative of a graph, as a graph, which may be compiled and differentiated again. Its inputs are the
  // graph's, and then those that the mode adds. Cotangents are adjoints, so that kGrad of a real function of x + iy is
  // df/dx + i df/dy. Inputs and outputs that are neither floats nor complex have no tangents and cotangents.
  // UNIMPLEMENTED, with the node and the op in the ErrorDetail, if an op has no derivative.
  absl::StatusOr<v1::Graph> Differentiate(const v1::Graph& graph, const DerivativeOptions& options = {});
  // Returns the derivative by kVjp or kGrad as two graphs, so that residuals may stay on the server between two calls.
  absl::StatusOr<SplitDerivative> DifferentiateInTwo(const v1::Graph& graph, const DerivativeOptions& options = {});

  // Compiles a graph unless the server knows it, and runs it. Arguments are in the order of its inputs.
  absl::StatusOr<ExecuteResult> Execute(const v1::Graph& graph, absl::Span<const HostTensor> arguments,
                                        const ExecuteOptions& options = {});
  // Runs a compiled program. If the server does not know it, because it dropped it or is another server behind a
  // balancer, the call is made once more with the graph. The client keeps the graphs that it compiled, up to
  // 256 MiB; FAILED_PRECONDITION without the graph: compile again.
  absl::StatusOr<ExecuteResult> Execute(absl::string_view fingerprint, absl::Span<const HostTensor> arguments,
                                        const ExecuteOptions& options = {});
  // Runs a graph or a program with resident tensors as arguments, and results to keep in the session.
  absl::StatusOr<ExecuteAnswer> Execute(const ExecuteCall& call);

  // Start what Execute, Compile, PutTensor and GetTensor do, and return at once with a handle to wait for the outcome,
  // to be called back with it, or to cancel the call (started_call.h). Deadlines count from the start. Each runs on a
  // thread of the client's: at most 64 at a time, and one more has failed with RESOURCE_EXHAUSTED when it returns. They
  // do not wait for each other; calls that use what others keep go into a pipeline. The graph is copied, tensors are
  // not. The client's destructor cancels what still runs and waits for its end.
  StartedCall<absl::StatusOr<ExecuteAnswer>> StartExecute(ExecuteCall call);
  StartedCall<absl::StatusOr<v1::CompileResponse>> StartCompile(const v1::Graph& graph, ExecuteOptions options = {});
  StartedCall<absl::Status> StartPutTensor(std::string session, std::string handle, HostTensor tensor,
                                           ExecuteOptions options = {});
  StartedCall<absl::StatusOr<HostTensor>> StartGetTensor(std::string session, std::string handle,
                                                         ExecuteOptions options = {});

  // Opens a stream of calls that do not wait for each other. Returns at once; without a connection the first answer
  // fails.
  std::unique_ptr<Pipeline> OpenPipeline(PipelineOptions options = {});

  // Opens a session, which keeps tensors on the server under the client's handles. It ends when it is closed, or when
  // no call has named it for the lease. A lease of zero means the server's default; a longer one than the server's
  // longest is cut; Session::lease is the lease in force.
  absl::StatusOr<Session> OpenSession(absl::Duration lease = absl::ZeroDuration());
  absl::Status CloseSession(const std::string& session);
  // Send and receive a tensor of any size, in chunks with checksums and without a copy, or through shared memory. After
  // a broken connection they go on in another call from the last byte that arrived, within the deadline.
  absl::Status PutTensor(const std::string& session, const std::string& handle, const HostTensor& tensor,
                         const ExecuteOptions& options = {});
  absl::StatusOr<HostTensor> GetTensor(const std::string& session, const std::string& handle,
                                       const ExecuteOptions& options = {});
  // Frees tensors of the session. Returns the names among `handles` that are no handles.
  absl::StatusOr<std::vector<std::string>> DeleteTensors(const std::string& session,
                                                         absl::Span<const std::string> handles);

  absl::StatusOr<v1::ServerInfo> GetServerInfo(bool with_capabilities = false);
  // Asks grpc.health.v1 for a service, or with an empty name for the server. An unknown service is kServiceUnknown.
  absl::StatusOr<Health> CheckHealth(absl::string_view service = "");

  const std::string& target() const { return options_.target; }
  // Returns the memory from which and into which tensors pass without a copy; null if the server offers none.
  const std::shared_ptr<SharedMemory>& shared_memory() const { return shared_memory_; }

 private:
  // The stubs, and what the calls have taught.
  struct Stubs;

  Client(ConnectOptions options, std::unique_ptr<Stubs> stubs);

  absl::StatusOr<v1::ExplainResponse> ExplainGraph(const v1::Graph& graph, const ExecuteOptions& options);
  absl::StatusOr<ExecuteResult> Execute(v1::ExecuteRequest request, absl::Span<const HostTensor> arguments,
                                        const ExecuteOptions& options);
  // Runs a call, and once more with the graph if the program is not found.
  absl::StatusOr<ExecuteAnswer> Run(v1::ExecuteRequest request, absl::Span<const Argument> arguments,
                                    absl::Span<const ResultPlan> plans, const ExecuteOptions& options);
  // Runs a call through shared memory if there is some; repeats it if it may run twice.
  absl::StatusOr<ExecuteAnswer> RunOnce(const v1::ExecuteRequest& request, absl::Span<const Argument> arguments,
                                        absl::Span<const ResultPlan> plans, const ExecuteOptions& options,
                                        absl::Time deadline, const std::string& route);

  absl::StatusOr<v1::ServerInfo> AskForInfo(bool with_capabilities, absl::Time deadline);
  // Connects to the server's shared memory if it offers some.
  void FindSharedMemory();
  absl::StatusOr<ExecuteAnswer> SendExecute(const v1::ExecuteRequest& request, absl::Span<const Argument> arguments,
                                            absl::Span<const ResultPlan> plans, const ExecuteOptions& options,
                                            absl::Time deadline, const std::string& route,
                                            const std::shared_ptr<SharedMemory>& memory);

  ConnectOptions options_;
  std::unique_ptr<Stubs> stubs_;
  std::shared_ptr<SharedMemory> shared_memory_;
  std::shared_ptr<SharedMemory> transfer_memory_;  // the same if PutTensor and GetTensor use it too; else null
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENT_H_
