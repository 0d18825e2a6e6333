#ifndef TENSORD_SERVER_RPC_EXECUTE_NAMED_HANDLES_H_
#define TENSORD_SERVER_RPC_EXECUTE_NAMED_HANDLES_H_

#include <cstddef>
#include <vector>

#include "server/sessions/session_store.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// Returns the handles that a request uses and those that it keeps results under. `poisons` as in HandleRequest.
HandleRequest HandlesOf(const v1::ExecuteRequest& request, bool poisons);

// Returns which results a request keeps, by output.
std::vector<size_t> KeptOf(const v1::ExecuteRequest& request);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_NAMED_HANDLES_H_
