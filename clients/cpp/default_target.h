#ifndef TENSORD_CLIENTS_CPP_DEFAULT_TARGET_H_
#define TENSORD_CLIENTS_CPP_DEFAULT_TARGET_H_

#include <string>

namespace tensord::client {

// Where a server of this user listens unless it was told otherwise: "unix:$XDG_RUNTIME_DIR/tensord.sock", or
// "unix:/tmp/tensord-<uid>/tensord.sock" where that variable is unset or empty.
std::string DefaultTarget();

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_DEFAULT_TARGET_H_
