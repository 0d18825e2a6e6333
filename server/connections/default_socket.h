#ifndef TENSORD_SERVER_CONNECTIONS_DEFAULT_SOCKET_H_
#define TENSORD_SERVER_CONNECTIONS_DEFAULT_SOCKET_H_

#include <string>

namespace tensord::server {

// The default address of a server. A value.
struct DefaultSocket {
  std::string folder;
  bool is_private_folder = false;  // the server's own, which may have to be made; else the user's runtime folder

  std::string address() const { return "unix:" + folder + "/tensord.sock"; }
};

// Makes nothing.
DefaultSocket DefaultSocketOfUser();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_DEFAULT_SOCKET_H_
