#ifndef TENSORD_SERVER_CONNECTIONS_SAME_PLACE_H_
#define TENSORD_SERVER_CONNECTIONS_SAME_PLACE_H_

#include "server/connections/listen_address.h"

namespace tensord::server {

// Tells whether two listeners could not have both: one path, whatever links lead to it, or one port, unless it is a
// free one, at hosts with a common address. No name is looked up.
bool IsSamePlace(const ListenAddress& a, const ListenAddress& b);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_SAME_PLACE_H_
