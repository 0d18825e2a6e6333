#ifndef TENSORD_SERVER_IDENTITY_CALLER_H_
#define TENSORD_SERVER_IDENTITY_CALLER_H_

#include <string>

namespace tensord::server {

// Who makes a call, as far as the server can tell. Where it asks for no identity all callers are one tenant.
struct Caller {
  std::string tenant = "default";
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_CALLER_H_
