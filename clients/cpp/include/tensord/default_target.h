#ifndef TENSORD_DEFAULT_TARGET_H_
#define TENSORD_DEFAULT_TARGET_H_

#include <string>

namespace tensord::client {

// $TENSORD_TARGET; or where a server of this user listens by default, which is "unix:$XDG_RUNTIME_DIR/tensord.sock", or
// "unix:/tmp/tensord-<uid>/tensord.sock". A variable that is unset or empty says nothing.
std::string DefaultTarget();

}  // namespace tensord::client

#endif  // TENSORD_DEFAULT_TARGET_H_
