#include "tensord/execute_call.h"

#include "absl/status/status.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {
namespace {

v1::ResultOption::Delivery ToWire(ResultPlan::Delivery delivery) {
  switch (delivery) {
    case ResultPlan::Delivery::kReturn:
      return v1::ResultOption::DELIVERY_INLINE;
    case ResultPlan::Delivery::kKeep:
      return v1::ResultOption::DELIVERY_KEEP;
    case ResultPlan::Delivery::kBoth:
      return v1::ResultOption::DELIVERY_BOTH;
    case ResultPlan::Delivery::kDiscard:
      return v1::ResultOption::DELIVERY_DISCARD;
  }
  return v1::ResultOption::DELIVERY_INLINE;
}

}  // namespace

absl::StatusOr<v1::ExecuteRequest> ToExecuteRequest(const ExecuteCall& call) {
  if (call.fingerprint.empty() && call.graph == nullptr) {
    return absl::InvalidArgumentError("a call names its program, by a fingerprint or by a graph");
  }
  if (!call.fingerprint.empty() && call.graph != nullptr) {
    return absl::InvalidArgumentError("a call names its program by a fingerprint or by a graph, and not by both");
  }
  v1::ExecuteRequest request;
  if (call.graph != nullptr) {
    *request.mutable_graph() = *call.graph;
    *request.mutable_options() = ToCompileOptions(call.options);
  } else {
    request.set_fingerprint(call.fingerprint);
  }
  for (const ResultPlan& plan : call.results) {
    v1::ResultOption* option = request.add_results();
    option->set_delivery(ToWire(plan.delivery));
    option->set_handle(plan.handle);
  }
  request.set_session(call.session);
  request.set_priority(call.options.priority);
  request.set_profile(call.options.profile);
  return request;
}

}  // namespace tensord::client
