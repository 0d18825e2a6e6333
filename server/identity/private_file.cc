#include "server/identity/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace tensord::server {
namespace {

constexpr int64_t kMaxBytes = int64_t{4} << 20;

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status CheckMode(const std::string& path, mode_t mode, FileSecrecy secrecy) {
  const mode_t bits = mode & 07777;
  if ((bits & 0022) != 0) {
    return Wrong(path, absl::StrFormat("more than its owner may write it, mode %04o; chmod go-w", bits));
  }
  if (secrecy == FileSecrecy::kSecret && (bits & 0007) != 0) {
    return Wrong(path, absl::StrFormat("everybody may read it, mode %04o; chmod o-rwx", bits));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadPrivateFile(const std::string& path, FileSecrecy secrecy) {
  // Not blocking: a pipe without a writer would hold the server up.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) {
    return Wrong(path, absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return Wrong(path, "is no file");
  const absl::Status mode = CheckMode(path, info.st_mode, secrecy);
  if (!mode.ok()) return mode;
  std::string content;
  char piece[16384];
  while (true) {
    const ssize_t count = read(file.get(), piece, sizeof(piece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Wrong(path, absl::StrCat("cannot be read: ", std::strerror(errno)));
    if (count == 0) return content;
    content.append(piece, static_cast<size_t>(count));
    if (static_cast<int64_t>(content.size()) > kMaxBytes) {
      return Wrong(path, absl::StrCat("is larger than ", kMaxBytes, " bytes"));
    }
  }
}

}  // namespace tensord::server
