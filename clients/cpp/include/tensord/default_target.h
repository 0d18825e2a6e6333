#ifndef TENSORD_DEFAULT_TARGET_H_
#define TENSORD_DEFAULT_TARGET_H_

#include <string>

namespace tensord::client {

// Returns $TENSORD_TARGET, or the default address of this user's server: "unix:$XDG_RUNTIME_DIR/tensord.sock", or
// "unix:/tmp/tensord-<uid>/tensord.sock". An empty variable counts as unset.
std::string DefaultTarget();

}  // namespace tensord::client

#endif  // TENSORD_DEFAULT_TARGET_H_
