#include "server/rpc/execute/named_handles.h"

#include "server/rpc/execute/execute_response.h"

namespace tensord::server {

HandleRequest HandlesOf(const v1::ExecuteRequest& request, bool poisons) {
  HandleRequest handles = {.poisons = poisons};
  for (const v1::Argument& argument : request.arguments()) {
    if (argument.value_case() == v1::Argument::kHandle) handles.uses.push_back({argument.handle(), false});
    if (argument.value_case() == v1::Argument::kDonatedHandle)
      handles.uses.push_back({argument.donated_handle(), true});
  }
  for (const v1::ResultOption& option : request.results()) {
    if (IsKept(option)) handles.keeps.push_back(option.handle());
  }
  return handles;
}

std::vector<size_t> KeptOf(const v1::ExecuteRequest& request) {
  std::vector<size_t> kept;
  for (int i = 0; i < request.results_size(); ++i) {
    if (IsKept(request.results(i))) kept.push_back(static_cast<size_t>(i));
  }
  return kept;
}

}  // namespace tensord::server
