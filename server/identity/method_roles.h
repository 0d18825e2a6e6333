#ifndef TENSORD_SERVER_IDENTITY_METHOD_ROLES_H_
#define TENSORD_SERVER_IDENTITY_METHOD_ROLES_H_

#include <cstddef>

#include "server/identity/roles.h"
#include "server/observe/records/rpc_method.h"

namespace tensord::server {

// The role that a caller needs for each method, as rpc_methods.def says.
inline constexpr Role kMethodRoles[] = {
#define TENSORD_RPC_METHOD(name, role) Role::role,
#include "server/observe/records/rpc_methods.def"
#undef TENSORD_RPC_METHOD
};

inline constexpr Role RoleFor(RpcMethod method) { return kMethodRoles[static_cast<size_t>(method)]; }

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_METHOD_ROLES_H_
