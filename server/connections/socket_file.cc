#include "server/connections/socket_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace tensord::server {

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat info {};
  if (lstat(path_.c_str(), &info) != 0) path_.clear();
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

SocketFile::SocketFile(SocketFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_) {}

SocketFile::~SocketFile() {
  struct stat info {};
  if (path_.empty() || lstat(path_.c_str(), &info) != 0) return;
  if (info.st_dev == device_ && info.st_ino == inode_) unlink(path_.c_str());
}

}  // namespace tensord::server
