#ifndef TENSORD_SERVER_CONNECTIONS_CONNECTION_PEER_H_
#define TENSORD_SERVER_CONNECTIONS_CONNECTION_PEER_H_

#include <sys/socket.h>

#include <string>

namespace tensord::server {

// The other end of a connection. A value.
struct ConnectionPeer {
  std::string name;     // as gRPC names it to calls: "ipv4:127.0.0.1:4711"; of a unix socket all of one process alike
  std::string address;  // for whom it counts: "ipv4:127.0.0.1", of IPv6 the network of 64 bits; empty: a unix socket
  std::string text;     // for people
};

// "pid=4711,uid=1000": of the process that connected, as the system knows it. Empty if it does not.
std::string UnixPeerName(int connection);

// Returns the peer of a connection accepted from `from`.
ConnectionPeer ConnectionPeerOf(int connection, const sockaddr_storage& from);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_CONNECTION_PEER_H_
