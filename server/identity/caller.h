#ifndef TENSORD_SERVER_IDENTITY_CALLER_H_
#define TENSORD_SERVER_IDENTITY_CALLER_H_

#include <string>

#include "server/identity/roles.h"

namespace tensord::server {

// The maker of a call, as far as the server can tell. If the server asks for no identity, all callers are one tenant,
// which may do everything.
struct Caller {
  std::string tenant = "default";
  Roles roles = Roles::All();
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_CALLER_H_
