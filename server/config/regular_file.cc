#include "server/config/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tensord::server {
namespace {

constexpr int64_t kMaxBytes = int64_t{4} << 20;

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

absl::StatusOr<RegularFile> ReadRegularFile(const std::string& path) {
  // Not blocking: a pipe without a writer would hold the server up.
  const OpenFile opened(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (opened.get() < 0 || fstat(opened.get(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read: ", std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return Wrong(path, "is no file");
  RegularFile file{.content = {}, .mode = info.st_mode & 07777};
  char piece[16384];
  while (true) {
    const ssize_t count = read(opened.get(), piece, sizeof(piece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Wrong(path, absl::StrCat("cannot be read: ", std::strerror(errno)));
    if (count == 0) return file;
    file.content.append(piece, static_cast<size_t>(count));
    if (static_cast<int64_t>(file.content.size()) > kMaxBytes) {
      return Wrong(path, absl::StrCat("is larger than ", kMaxBytes, " bytes"));
    }
  }
}

}  // namespace tensord::server
