#include "clients/cpp/calls/program_calls.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/connection/call_context.h"
#include "clients/cpp/connection/repeated_call.h"
#include "clients/cpp/connection/routing.h"
#include "clients/cpp/connection/unary_call.h"
#include "tensord/error_detail.h"

namespace tensord::client {
namespace {

// Protobuf's 2 GiB, less room for the fields beside the graph.
constexpr size_t kMaxGraphBytes = (size_t{1} << 31) - (size_t{1} << 20);

}  // namespace

absl::Status CheckSize(const v1::Graph& graph) {
  const size_t bytes = graph.ByteSizeLong();
  if (bytes <= kMaxGraphBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the graph is too large for a message; make constants inputs: ", bytes,
                                                 " bytes, limit ", kMaxGraphBytes));
}

ProgramCalls::ProgramCalls(const std::shared_ptr<grpc::Channel>& channel, ConnectOptions options)
    : options_(std::move(options)), stub_(v1::Compute::NewStub(channel)) {}

absl::StatusOr<v1::CompileResponse> ProgramCalls::Compile(v1::CompileRequest request, absl::Time deadline,
                                                          const std::string& route) {
  std::string own_route = RouteOfProgram(request.graph(), request.options());
  absl::StatusOr<v1::CompileResponse> compiled = RepeatedCall<v1::CompileResponse>(deadline, [&] {
    return UnaryCall(ContextOf(options_, deadline, route.empty() ? own_route : route), *stub_,
                     &v1::Compute::Stub::PrepareAsyncCompile, request);
  });
  if (compiled.ok()) compiled_.Add(compiled->program().fingerprint(), std::move(request), std::move(own_route));
  return compiled;
}

absl::StatusOr<v1::Program> ProgramCalls::Get(absl::string_view fingerprint, absl::Time deadline,
                                              absl::string_view route) {
  v1::GetProgramRequest request;
  request.set_fingerprint(std::string(fingerprint));
  return RepeatedCall<v1::Program>(deadline, [&] {
    return UnaryCall(ContextOf(options_, deadline, route), *stub_, &v1::Compute::Stub::PrepareAsyncGetProgram, request);
  });
}

absl::StatusOr<v1::ExplainResponse> ProgramCalls::Explain(const v1::ExplainRequest& request, absl::Time deadline) {
  std::string route;
  if (request.has_graph()) {
    route = RouteOfProgram(request.graph(), request.options());
  } else if (const std::optional<CompiledProgram> program = compiled_.Find(request.fingerprint())) {
    route = program->route;
  }
  return RepeatedCall<v1::ExplainResponse>(deadline, [&] {
    return UnaryCall(ContextOf(options_, deadline, route), *stub_, &v1::Compute::Stub::PrepareAsyncExplain, request);
  });
}

absl::StatusOr<v1::DifferentiateResponse> ProgramCalls::Differentiate(const v1::DifferentiateRequest& request,
                                                                      absl::Time deadline) {
  // Any server will do: none keeps a thing of it.
  return RepeatedCall<v1::DifferentiateResponse>(deadline, [&] {
    return UnaryCall(ContextOf(options_, deadline, ""), *stub_, &v1::Compute::Stub::PrepareAsyncDifferentiate, request);
  });
}

absl::StatusOr<std::string> ProgramCalls::MakeKnown(const std::string& fingerprint, absl::Time deadline,
                                                    const std::string& route) {
  const std::optional<CompiledProgram> program = compiled_.Find(fingerprint);
  if (!program.has_value()) return fingerprint;
  const absl::StatusOr<v1::Program> known = Get(program->fingerprint, deadline, route);
  if (known.ok()) return program->fingerprint;
  if (ReasonOf(known.status()) != "PROGRAM_NOT_FOUND") return known.status();
  const absl::StatusOr<v1::CompileResponse> compiled = Compile(*program->source, deadline, route);
  if (!compiled.ok()) return compiled.status();
  return compiled->program().fingerprint();
}

}  // namespace tensord::client
