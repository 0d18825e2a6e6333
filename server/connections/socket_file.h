#ifndef TENSORD_SERVER_CONNECTIONS_SOCKET_FILE_H_
#define TENSORD_SERVER_CONNECTIONS_SOCKET_FILE_H_

#include <sys/types.h>

#include <string>

namespace tensord::server {

// The file of a unix socket, which goes with the object, unless another has taken its path since. Move-only;
// thread-compatible.
class SocketFile {
 public:
  // Takes over the socket that was just bound to the path.
  explicit SocketFile(std::string path);
  ~SocketFile();
  SocketFile(SocketFile&& other) noexcept;
  SocketFile& operator=(SocketFile&&) = delete;

 private:
  std::string path_;  // empty: nothing is to go
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_SOCKET_FILE_H_
