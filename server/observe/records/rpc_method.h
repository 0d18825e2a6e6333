#ifndef TENSORD_SERVER_OBSERVE_RECORDS_RPC_METHOD_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_RPC_METHOD_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tensord::server {

enum class RpcMethod : uint8_t {
#define TENSORD_RPC_METHOD(name, role) k##name,
#include "server/observe/records/rpc_methods.def"
#undef TENSORD_RPC_METHOD
};

inline constexpr absl::string_view kRpcMethodNames[] = {
#define TENSORD_RPC_METHOD(name, role) #name,
#include "server/observe/records/rpc_methods.def"
#undef TENSORD_RPC_METHOD
};

inline constexpr size_t kNumRpcMethods = sizeof(kRpcMethodNames) / sizeof(kRpcMethodNames[0]);

inline absl::string_view Name(RpcMethod method) { return kRpcMethodNames[static_cast<size_t>(method)]; }

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_RPC_METHOD_H_
