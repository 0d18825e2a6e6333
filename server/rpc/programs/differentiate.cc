#include "engine/autodiff/differentiate.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/verifier.h"
#include "proto/codec/graph_codec.h"
#include "proto/codec/type_codec.h"
#include "server/lifecycle/added_bytes.h"
#include "server/rpc/calls/handlers.h"
#include "server/rpc/calls/request_wait.h"
#include "server/rpc/programs/program_job.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

// A response's graphs, its messages and what the derivative was made of, roughly.
constexpr int64_t kBytesOfResponseByte = 8;

// Encodes a graph that this server would take back.
absl::StatusOr<v1::Graph> EncodeWithin(const codec::GraphLimits& limits, const Graph& graph) {
  ASSIGN_OR_RETURN(v1::Graph wire, codec::EncodeGraph(graph));
  RETURN_IF_ERROR(codec::CheckGraphLimits(wire, limits));
  return wire;
}

absl::StatusOr<v1::DifferentiateResponse> MakeDerivative(Graph graph, const DerivativeRequest& request, bool split,
                                                         const codec::GraphLimits& limits) {
  RETURN_IF_ERROR(InferTypes(&graph).status());
  v1::DifferentiateResponse response;
  if (split) {
    ASSIGN_OR_RETURN(const SplitDerivative derivative, DifferentiateInTwo(graph, request));
    ASSIGN_OR_RETURN(*response.mutable_graph(), EncodeWithin(limits, derivative.forward));
    ASSIGN_OR_RETURN(*response.mutable_backward(), EncodeWithin(limits, derivative.backward));
    return response;
  }
  ASSIGN_OR_RETURN(const Graph derivative, Differentiate(graph, request));
  ASSIGN_OR_RETURN(*response.mutable_graph(), EncodeWithin(limits, derivative));
  return response;
}

DerivativeMode DecodeMode(v1::DifferentiateRequest::Mode mode) {
  switch (mode) {
    case v1::DifferentiateRequest::MODE_JVP:
      return DerivativeMode::kJvp;
    case v1::DifferentiateRequest::MODE_VJP:
      return DerivativeMode::kVjp;
    case v1::DifferentiateRequest::MODE_GRAD:
      return DerivativeMode::kGrad;
    default:
      return DerivativeMode::kUnspecified;
  }
}

// Counts the memory that the derivative takes beside the request, until it is answered.
absl::StatusOr<std::shared_ptr<const AddedBytes>> Charge(UnaryCall* call, const Graph& graph, bool split) {
  const std::shared_ptr<const AddedBytes> request = call->HoldBytes();
  ASSIGN_OR_RETURN(AddedBytes added,
                   AddedBytes::Add(&call->parts().admission.gate->bytes(), BytesToDifferentiate(graph, split),
                                   call->caller().tenant, request == nullptr ? 0 : request->bytes()));
  return std::make_shared<const AddedBytes>(std::move(added));
}

// Makes the derivative on a thread of the compile pool, in a turn of the tenant, and answers; or gives up with the
// call's deadline or cancellation, and stops the work.
void DifferentiateInPool(UnaryCall* call, Graph graph, DerivativeRequest request, bool split,
                         const codec::GraphLimits& limits) {
  call->open().At(Stage::kCompile);
  absl::StatusOr<std::shared_ptr<const AddedBytes>> added = Charge(call, graph, split);
  if (!added.ok()) return call->Fail(added.status());
  const auto wait = std::make_shared<RequestWait>(*call);
  const auto abandoned = std::make_shared<std::atomic<bool>>(false);
  ProgramCache* const cache = call->parts().programs.cache;
  auto work = [call, cache, wait, abandoned, graph = std::move(graph), request = std::move(request), split, limits,
               bytes = call->HoldBytes(), added = *std::move(added)]() mutable {
    StopSignal stop(abandoned.get());
    const StopSignal::Scope scope(&stop);
    const absl::Time start = SteadyNow();
    absl::StatusOr<v1::DifferentiateResponse> response = MakeDerivative(std::move(graph), request, split, limits);
    bytes = nullptr;
    added = nullptr;
    const int64_t freed = response.ok() ? kBytesOfResponseByte * static_cast<int64_t>(response->ByteSizeLong()) : 0;
    if (!wait->End()) {
      response = absl::CancelledError();
      return cache->LetGo(freed);
    }
    call->ContinueInTurn([call, cache, freed, response = std::move(response), time = SteadyNow() - start]() mutable {
      call->record().stages.EndWith(Stage::kLookup, Stage::kCompile, time);
      if (!response.ok()) return call->Fail(response.status());
      call->Reply(*response);
      response = absl::CancelledError();
      cache->LetGo(freed);
    });
  };
  CompilePool* const pool = call->parts().programs.compile_pool;
  const absl::StatusOr<CompilePool::Ticket> ticket = pool->Submit(call->caller().tenant, std::move(work));
  if (!ticket.ok()) return call->Fail(ticket.status());
  wait->Watch([call, abandoned, pool, ticket = *ticket](const absl::Status& status) {
    abandoned->store(true, std::memory_order_relaxed);
    pool->Drop(ticket);
    call->record().stages.End(Stage::kLookup);
    call->Continue([call, status] { call->Fail(status); });
  });
}

}  // namespace

void HandleDifferentiate(UnaryCall* call) {
  v1::DifferentiateRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  if (!request.has_graph()) return call->Fail(Refuse(Refusal::kMalformedMessage, "the request has no graph"));
  const absl::StatusOr<Order> order = codec::DecodeOrder(request.order(), Order::kColumnMajor);
  if (!order.ok()) return call->Fail(order.status());
  const ServiceParts& parts = call->parts();
  const codec::GraphLimits limits = parts.admission.graph_limits.now();
  absl::StatusOr<Graph> graph = codec::DecodeGraph(request.graph(), *parts.programs.registry, limits, *order,
                                                   [call] { return call->CheckWanted(); });
  if (!graph.ok()) return call->Fail(graph.status());
  DifferentiateInPool(call, *std::move(graph),
                      {.mode = DecodeMode(request.mode()),
                       .wrt = {request.wrt().begin(), request.wrt().end()},
                       .keep_outputs = request.keep_outputs(),
                       .checkpoints = {request.checkpoints().begin(), request.checkpoints().end()},
                       .bounds = {.nodes = limits.graph_nodes, .edges = limits.graph_edges}},
                      request.split(), limits);
}

}  // namespace tensord::server
