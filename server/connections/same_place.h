#ifndef TENSORD_SERVER_CONNECTIONS_SAME_PLACE_H_
#define TENSORD_SERVER_CONNECTIONS_SAME_PLACE_H_

#include "server/connections/listen_address.h"

namespace tensord::server {

// Whether two listeners could not have them both: one path, whatever links lead to it, or one port, unless it is a free
// one, at hosts that have an address in common. No name is looked up.
bool IsSamePlace(const ListenAddress& a, const ListenAddress& b);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_SAME_PLACE_H_
