#include "tensord/client.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/calls/execute_stream.h"
#include "clients/cpp/calls/program_calls.h"
#include "clients/cpp/calls/session_places.h"
#include "clients/cpp/calls/started_calls.h"
#include "clients/cpp/connection/call_context.h"
#include "clients/cpp/connection/channel_arguments.h"
#include "clients/cpp/connection/connecting.h"
#include "clients/cpp/connection/repeated_call.h"
#include "clients/cpp/connection/routing.h"
#include "clients/cpp/connection/steady_time.h"
#include "clients/cpp/connection/transport_end.h"
#include "clients/cpp/connection/unary_call.h"
#include "clients/cpp/connection/upload_connection.h"
#include "clients/cpp/shared_memory/result_sizes.h"
#include "clients/cpp/shared_memory/shared_call.h"
#include "clients/cpp/transfer/resumed_transfer.h"
#include "clients/cpp/transfer/shared_transfer.h"
#include "clients/cpp/wire/duration.h"
#include "clients/cpp/wire/execute_wire.h"
#include "clients/cpp/wire/health.h"
#include "grpc/grpc.h"
#include "grpcpp/channel.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "tensord/access.h"
#include "tensord/connect_options.h"
#include "tensord/error_detail.h"
#include "tensord/messages.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord::client {
namespace {

constexpr size_t kFingerprintDigits = 64;

// For a transfer's calls. The options outlive it.
MakeContext ContextsOf(const ConnectOptions& options, std::string route) {
  return [&options, route = std::move(route)](absl::Time deadline) { return ContextOf(options, deadline, route); };
}

// gRPC sends a call with such a deadline all the same, and a quick answer to a part of a transfer comes before it.
absl::Status PassedBefore() { return absl::DeadlineExceededError("the deadline had passed before the call was sent"); }

// Tells whether running it twice makes no difference.
bool MayRunTwice(absl::Span<const Argument> arguments, absl::Span<const ResultPlan> plans) {
  return std::none_of(arguments.begin(), arguments.end(), [](const Argument& one) { return one.is_donated(); }) &&
         std::none_of(plans.begin(), plans.end(), [](const ResultPlan& plan) { return plan.is_kept(); });
}

v1::DifferentiateRequest ToRequest(const v1::Graph& graph, const DerivativeOptions& options) {
  v1::DifferentiateRequest request;
  *request.mutable_graph() = graph;
  request.set_mode(static_cast<v1::DifferentiateRequest::Mode>(options.mode));
  request.mutable_wrt()->Assign(options.wrt.begin(), options.wrt.end());
  request.set_keep_outputs(options.keep_outputs);
  request.set_order(ToWire(options.order));
  request.mutable_checkpoints()->Assign(options.checkpoints.begin(), options.checkpoints.end());
  return request;
}

}  // namespace

struct Client::Stubs {
  Stubs(const std::shared_ptr<grpc::Channel>& channel, const ConnectOptions& options, absl::string_view plain_target)
      : compute(v1::Compute::NewStub(channel)),
        generic(channel),
        uploads(plain_target),
        programs(std::make_shared<ProgramCalls>(channel, options)) {}

  std::unique_ptr<v1::Compute::Stub> compute;
  grpc::GenericStub generic;
  UploadConnection uploads;
  const std::shared_ptr<ProgramCalls> programs;
  SessionPlaces sessions;
  StartedCalls started;
  const std::shared_ptr<ResultSizes> result_sizes = std::make_shared<ResultSizes>();  // shared with pipelines
};

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(ConnectOptions options) {
  // Lives as long as the process: with its last user gRPC ends, and waits up to ten seconds for a thread of its own
  // that was polling on behalf of a large write.
  [[maybe_unused]] static const bool is_kept = (grpc_init(), true);
  if (options.target.empty()) options.target = DefaultTarget();
  if (const absl::Status target = CheckTarget(options.target); !target.ok()) return target;
  const bool is_plain = options.credentials == nullptr;
  if (is_plain) options.credentials = grpc::InsecureChannelCredentials();
  const grpc::ChannelArguments arguments = TunedChannelArguments();
  std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(options.target, options.credentials, arguments);
  if (const absl::Status connected = AwaitConnection(channel, options.target, options.connect_timeout);
      !connected.ok()) {
    return connected;
  }
  auto stubs = std::make_unique<Stubs>(channel, options, is_plain ? options.target : "");
  std::unique_ptr<Client> client(new Client(std::move(options), std::move(stubs)));
  if (client->options_.shared_memory) client->FindSharedMemory();
  return client;
}

void Client::FindSharedMemory() {
  if (!IsLocal(options_.target)) return;  // the path would be one of this machine, and nobody knows who listens there
  const absl::Time deadline = SteadyNow() + options_.connect_timeout;
  const absl::StatusOr<v1::ServerInfo> info =
      AskForInfo(/*with_capabilities=*/false, std::min(deadline, DeadlineOf(options_, std::nullopt)));
  if (!info.ok() || !info->has_shared_memory()) return;
  std::string authorization;
  for (const auto& [key, value] : options_.metadata) {
    if (key == "authorization") authorization = value;
  }
  absl::StatusOr<std::shared_ptr<SharedMemory>> memory =
      SharedMemory::Connect(info->shared_memory().socket(), std::move(authorization), TimeOfDay(deadline));
  if (!memory.ok()) return;
  shared_memory_ = *std::move(memory);
  if (info->shared_memory().transfers()) transfer_memory_ = shared_memory_;
}

Client::Client(ConnectOptions options, std::unique_ptr<Stubs> stubs)
    : options_(std::move(options)), stubs_(std::move(stubs)) {}

Client::~Client() {
  stubs_->started.End();
  FreeEnded();
}

absl::StatusOr<v1::CompileResponse> Client::Compile(const v1::Graph& graph, const ExecuteOptions& options) {
  const absl::Status size = CheckSize(graph);
  if (!size.ok()) return size;
  v1::CompileRequest request;
  *request.mutable_graph() = graph;
  *request.mutable_options() = ToCompileOptions(options);
  return stubs_->programs->Compile(std::move(request), DeadlineOf(options_, options.deadline));
}

absl::StatusOr<v1::Program> Client::GetProgram(absl::string_view fingerprint) {
  const std::optional<CompiledProgram> program = stubs_->programs->compiled().Find(std::string(fingerprint));
  return stubs_->programs->Get(fingerprint, DeadlineOf(options_, std::nullopt),
                               program.has_value() ? program->route : "");
}

absl::StatusOr<v1::ExplainResponse> Client::ExplainGraph(const v1::Graph& graph, const ExecuteOptions& options) {
  const absl::Status size = CheckSize(graph);
  if (!size.ok()) return size;
  v1::ExplainRequest request;
  *request.mutable_graph() = graph;
  *request.mutable_options() = ToCompileOptions(options);
  return stubs_->programs->Explain(request, DeadlineOf(options_, options.deadline));
}

absl::StatusOr<std::string> Client::Explain(const v1::Graph& graph, const ExecuteOptions& options) {
  absl::StatusOr<v1::ExplainResponse> response = ExplainGraph(graph, options);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_text());
}

absl::StatusOr<std::string> Client::Explain(absl::string_view fingerprint) {
  v1::ExplainRequest request;
  const bool is_whole = fingerprint.size() >= kFingerprintDigits;
  (is_whole ? *request.mutable_fingerprint() : *request.mutable_fingerprint_prefix()) = std::string(fingerprint);
  absl::StatusOr<v1::ExplainResponse> response = stubs_->programs->Explain(request, DeadlineOf(options_, std::nullopt));
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_text());
}

absl::StatusOr<std::vector<v1::ContractionPlan>> Client::PlanContractions(const v1::Graph& graph,
                                                                          const ExecuteOptions& options) {
  absl::StatusOr<v1::ExplainResponse> response = ExplainGraph(graph, options);
  if (!response.ok()) return response.status();
  return std::vector<v1::ContractionPlan>(response->contractions().begin(), response->contractions().end());
}

absl::StatusOr<v1::Graph> Client::Differentiate(const v1::Graph& graph, const DerivativeOptions& options) {
  const absl::Status size = CheckSize(graph);
  if (!size.ok()) return size;
  absl::StatusOr<v1::DifferentiateResponse> response =
      stubs_->programs->Differentiate(ToRequest(graph, options), DeadlineOf(options_, options.deadline));
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_graph());
}

absl::StatusOr<SplitDerivative> Client::DifferentiateInTwo(const v1::Graph& graph, const DerivativeOptions& options) {
  const absl::Status size = CheckSize(graph);
  if (!size.ok()) return size;
  v1::DifferentiateRequest request = ToRequest(graph, options);
  request.set_split(true);
  absl::StatusOr<v1::DifferentiateResponse> response =
      stubs_->programs->Differentiate(request, DeadlineOf(options_, options.deadline));
  if (!response.ok()) return response.status();
  return SplitDerivative{.forward = std::move(*response->mutable_graph()),
                         .backward = std::move(*response->mutable_backward())};
}

absl::StatusOr<ExecuteResult> Client::Execute(v1::ExecuteRequest request, absl::Span<const HostTensor> arguments,
                                              const ExecuteOptions& options) {
  request.set_priority(options.priority);
  request.set_profile(options.profile);
  absl::StatusOr<ExecuteAnswer> answer = Run(std::move(request), ToArguments(arguments), {}, options);
  if (!answer.ok()) return answer.status();
  ExecuteResult result = {.stats = std::move(answer->stats)};
  for (ExecuteOutput& output : answer->outputs) result.outputs.push_back(*std::move(output.tensor));
  return result;
}

absl::StatusOr<ExecuteAnswer> Client::Execute(const ExecuteCall& call) {
  absl::StatusOr<v1::ExecuteRequest> request = ToExecuteRequest(call);
  if (!request.ok()) return request.status();
  return Run(*std::move(request), call.arguments, call.results, call.options);
}

StartedCall<absl::StatusOr<ExecuteAnswer>> Client::StartExecute(ExecuteCall call) {
  absl::StatusOr<v1::ExecuteRequest> request = ToExecuteRequest(call);
  call.graph = nullptr;
  return stubs_->started.Start<absl::StatusOr<ExecuteAnswer>>(
      [this, call = std::move(call), request = std::move(request)]() mutable -> absl::StatusOr<ExecuteAnswer> {
        if (!request.ok()) return request.status();
        return Run(*std::move(request), call.arguments, call.results, call.options);
      });
}

StartedCall<absl::StatusOr<v1::CompileResponse>> Client::StartCompile(const v1::Graph& graph, ExecuteOptions options) {
  return stubs_->started.Start<absl::StatusOr<v1::CompileResponse>>(
      [this, graph, options = std::move(options)] { return Compile(graph, options); });
}

StartedCall<absl::Status> Client::StartPutTensor(std::string session, std::string handle, HostTensor tensor,
                                                 ExecuteOptions options) {
  return stubs_->started.Start<absl::Status>(
      [this, session = std::move(session), handle = std::move(handle), tensor = std::move(tensor),
       options = std::move(options)] { return PutTensor(session, handle, tensor, options); });
}

StartedCall<absl::StatusOr<HostTensor>> Client::StartGetTensor(std::string session, std::string handle,
                                                               ExecuteOptions options) {
  return stubs_->started.Start<absl::StatusOr<HostTensor>>(
      [this, session = std::move(session), handle = std::move(handle), options = std::move(options)] {
        return GetTensor(session, handle, options);
      });
}

absl::StatusOr<ExecuteAnswer> Client::Run(v1::ExecuteRequest request, absl::Span<const Argument> arguments,
                                          absl::Span<const ResultPlan> plans, const ExecuteOptions& options) {
  const absl::Time deadline = DeadlineOf(options_, options.deadline);
  CompiledPrograms& compiled = stubs_->programs->compiled();
  const std::string name = request.fingerprint();
  const std::optional<CompiledProgram> program = name.empty() ? std::nullopt : compiled.Find(name);
  std::string route;
  if (!request.session().empty()) {
    route = stubs_->sessions.RouteOf(request.session());
  } else if (program.has_value()) {
    route = program->route;
  } else if (request.has_graph()) {
    route = RouteOfProgram(request.graph(), request.options());
  }
  if (!program.has_value()) return RunOnce(request, arguments, plans, options, deadline, route);

  request.set_fingerprint(program->fingerprint);
  absl::StatusOr<ExecuteAnswer> answer = RunOnce(request, arguments, plans, options, deadline, route);
  const bool was_known = ReasonOf(answer.status()) != "PROGRAM_NOT_FOUND";
  const bool is_renamed = compiled.NoteAnswer(name, was_known);
  if (was_known) return answer;
  if (is_renamed) {
    const auto again = stubs_->programs->Compile(*program->source, deadline);
    if (!again.ok()) return again.status();
    compiled.Rename(name, again->program().fingerprint());
  }
  *request.mutable_graph() = program->source->graph();
  *request.mutable_options() = program->source->options();
  return RunOnce(request, arguments, plans, options, deadline, route);
}

absl::StatusOr<ExecuteAnswer> Client::RunOnce(const v1::ExecuteRequest& request, absl::Span<const Argument> arguments,
                                              absl::Span<const ResultPlan> plans, const ExecuteOptions& options,
                                              absl::Time deadline, const std::string& route) {
  const auto send = [&](const std::shared_ptr<SharedMemory>& memory) {
    return SendExecute(request, arguments, plans, options, deadline, route, memory);
  };
  if (shared_memory_ == nullptr && MayRunTwice(arguments, plans)) {
    return RepeatedCall<ExecuteAnswer>(deadline, [&] { return send(nullptr); });
  }
  absl::StatusOr<ExecuteAnswer> answer = send(shared_memory_);
  if (!answer.ok() && shared_memory_ != nullptr && ReasonOf(answer.status()) == "REGION_UNKNOWN") {
    answer = send(nullptr);  // what was refused has not run
  }
  return answer;
}

std::unique_ptr<Pipeline> Client::OpenPipeline(PipelineOptions options) {
  const std::string route = options.session.empty() ? NewSessionRoute() : stubs_->sessions.RouteOf(options.session);
  const absl::Time deadline = DeadlineOf(options_, options.deadline);
  ExecuteStream::Sharing sharing;
  if (shared_memory_ != nullptr) {
    sharing = {.memory = shared_memory_, .sizes = stubs_->result_sizes, .deadline = deadline};
  }
  const auto find_program = [programs = stubs_->programs, route, deadline](const std::string& fingerprint) {
    return programs->MakeKnown(fingerprint, deadline, route);
  };
  return std::make_unique<Pipeline>(
      std::make_unique<ExecuteStream>(stubs_->generic, ContextOf(options_, deadline, route), options_.target,
                                      std::move(options.session), find_program, std::move(sharing)));
}

absl::StatusOr<ExecuteAnswer> Client::SendExecute(const v1::ExecuteRequest& request,
                                                  absl::Span<const Argument> arguments,
                                                  absl::Span<const ResultPlan> plans, const ExecuteOptions& options,
                                                  absl::Time deadline, const std::string& route,
                                                  const std::shared_ptr<SharedMemory>& memory) {
  SharedCall shared(memory, arguments, stubs_->result_sizes->Expected(request.fingerprint(), plans), deadline);
  absl::StatusOr<grpc::ByteBuffer> message;
  if (shared.spaces().empty()) {
    message = EncodeExecuteRequest(request, arguments, shared.places());
  } else {
    v1::ExecuteRequest with_spaces = request;
    shared.SetSpaces(&with_spaces);
    message = EncodeExecuteRequest(with_spaces, arguments, shared.places());
  }
  if (!message.ok()) return message.status();

  grpc::ByteBuffer response;
  grpc::Status status;
  stubs_->uploads.Call(message->Length(), stubs_->generic, [&](grpc::GenericStub& stub) {
    status = UnaryCall(ContextOf(options_, deadline, route), stub, kExecuteMethod, *message, &response);
  });
  absl::StatusOr<ExecuteAnswer> answer;
  if (status.ok()) {
    answer = DecodeExecuteResponse(response, options.order, plans, shared.spaces());
  } else {
    answer = ToAbslStatus(status);
  }
  if (!answer.ok()) {
    shared.Failed(answer.status());
  } else if (memory != nullptr) {
    stubs_->result_sizes->Learn(request.fingerprint(), *answer);
  }
  return answer;
}

absl::StatusOr<ExecuteResult> Client::Execute(const v1::Graph& graph, absl::Span<const HostTensor> arguments,
                                              const ExecuteOptions& options) {
  const absl::Status size = CheckSize(graph);
  if (!size.ok()) return size;
  v1::ExecuteRequest request;
  *request.mutable_graph() = graph;
  *request.mutable_options() = ToCompileOptions(options);
  return Execute(std::move(request), arguments, options);
}

absl::StatusOr<ExecuteResult> Client::Execute(absl::string_view fingerprint, absl::Span<const HostTensor> arguments,
                                              const ExecuteOptions& options) {
  v1::ExecuteRequest request;
  request.set_fingerprint(std::string(fingerprint));
  return Execute(std::move(request), arguments, options);
}

absl::StatusOr<Session> Client::OpenSession(absl::Duration lease) {
  if (lease < absl::ZeroDuration() || lease == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("a lease is a time that ends, not ", absl::FormatDuration(lease),
                                                   "; zero is the server's default"));
  }
  v1::OpenSessionRequest request;
  if (lease > absl::ZeroDuration()) {
    const int64_t seconds = absl::IDivDuration(lease, absl::Seconds(1), &lease);
    request.mutable_lease()->set_seconds(seconds);
    request.mutable_lease()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(lease)));
  }
  const std::string route = NewSessionRoute();
  const absl::StatusOr<v1::Session> opened =
      UnaryCall(ContextOf(options_, DeadlineOf(options_, std::nullopt), route), *stubs_->compute,
                &v1::Compute::Stub::PrepareAsyncOpenSession, request);
  if (!opened.ok()) return opened.status();
  stubs_->sessions.Add(opened->id(), route);
  return Session(this, opened->id(), ToAbslDuration(opened->lease()));
}

absl::Status Client::CloseSession(const std::string& session) {
  v1::CloseSessionRequest request;
  request.set_session(session);
  const absl::Status closed =
      UnaryCall(ContextOf(options_, DeadlineOf(options_, std::nullopt), stubs_->sessions.RouteOf(session)),
                *stubs_->compute, &v1::Compute::Stub::PrepareAsyncCloseSession, request)
          .status();
  if (closed.ok() || ReasonOf(closed) == "SESSION_UNKNOWN") stubs_->sessions.Remove(session);
  return closed;
}

absl::Status Client::PutTensor(const std::string& session, const std::string& handle, const HostTensor& tensor,
                               const ExecuteOptions& options) {
  v1::PutTensorRequest::Header header;
  header.set_session(session);
  header.set_handle(handle);
  header.set_device(options.device);
  const MakeContext make_context = ContextsOf(options_, stubs_->sessions.RouteOf(session));
  const absl::Time deadline = DeadlineOf(options_, options.deadline);
  if (deadline <= SteadyNow()) return PassedBefore();
  const SharedUpload shared =
      UploadShared(transfer_memory_.get(), stubs_->generic, make_context, deadline, header, tensor);
  if (shared.outcome.has_value()) return *shared.outcome;
  return UploadTensor(stubs_->generic, stubs_->uploads, make_context, deadline, std::move(header), tensor,
                      shared.was_sent);
}

absl::StatusOr<HostTensor> Client::GetTensor(const std::string& session, const std::string& handle,
                                             const ExecuteOptions& options) {
  v1::GetTensorRequest request;
  request.set_session(session);
  request.set_handle(handle);
  request.set_order(ToWire(options.order));
  const MakeContext make_context = ContextsOf(options_, stubs_->sessions.RouteOf(session));
  const absl::Time deadline = DeadlineOf(options_, options.deadline);
  if (deadline <= SteadyNow()) return PassedBefore();
  std::optional<absl::StatusOr<HostTensor>> shared =
      DownloadShared(transfer_memory_.get(), stubs_->generic, make_context, deadline, request);
  if (shared.has_value()) return *std::move(shared);
  return DownloadTensor(stubs_->generic, make_context, deadline, std::move(request));
}

absl::StatusOr<std::vector<std::string>> Client::DeleteTensors(const std::string& session,
                                                               absl::Span<const std::string> handles) {
  v1::DeleteTensorsRequest request;
  request.set_session(session);
  request.mutable_handles()->Assign(handles.begin(), handles.end());
  const absl::StatusOr<v1::DeleteTensorsResponse> response =
      UnaryCall(ContextOf(options_, DeadlineOf(options_, std::nullopt), stubs_->sessions.RouteOf(session)),
                *stubs_->compute, &v1::Compute::Stub::PrepareAsyncDeleteTensors, request);
  if (!response.ok()) return response.status();
  return std::vector<std::string>(response->missing().begin(), response->missing().end());
}

absl::StatusOr<v1::ServerInfo> Client::GetServerInfo(bool with_capabilities) {
  return AskForInfo(with_capabilities, DeadlineOf(options_, std::nullopt));
}

absl::StatusOr<v1::ServerInfo> Client::AskForInfo(bool with_capabilities, absl::Time deadline) {
  v1::GetServerInfoRequest request;
  request.set_capabilities(with_capabilities);
  return RepeatedCall<v1::ServerInfo>(deadline, [&] {
    return UnaryCall(ContextOf(options_, deadline, ""), *stubs_->compute, &v1::Compute::Stub::PrepareAsyncGetServerInfo,
                     request);
  });
}

absl::StatusOr<Health> Client::CheckHealth(absl::string_view service) {
  grpc::ByteBuffer response;
  const grpc::Status status = UnaryCall(ContextOf(options_, DeadlineOf(options_, std::nullopt), ""), stubs_->generic,
                                        kHealthMethod, EncodeHealthRequest(service), &response);
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return Health::kServiceUnknown;
  if (!status.ok()) return ToAbslStatus(status);
  return DecodeHealthResponse(response);
}

}  // namespace tensord::client
