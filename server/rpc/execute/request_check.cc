#include "server/rpc/execute/request_check.h"

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::server {

absl::Status CheckRequest(const v1::ExecuteRequest& request, const codec::GraphLimits& limits) {
  using codec::GraphLimits;
  RETURN_IF_ERROR(CheckLimit(limits, &GraphLimits::graph_inputs, request.arguments_size(), "arguments of the request"));
  RETURN_IF_ERROR(
      CheckLimit(limits, &GraphLimits::graph_outputs, request.results_size(), "options for results of the request"));
  for (const v1::ResultOption& option : request.results()) {
    if (!v1::ResultOption::Delivery_IsValid(option.delivery())) {
      return Refuse(Refusal::kUnsupportedRequest,
                    absl::StrCat("this server does not know delivery ", static_cast<int>(option.delivery())));
    }
  }
  return absl::OkStatus();
}

}  // namespace tensord::server
