#include "clients/cli/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace tensord::cli {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr mode_t kNewFileMode = 0666;

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

absl::StatusOr<std::string> ReadAll(int descriptor, const std::string& path) {
  struct stat attributes;
  if (fstat(descriptor, &attributes) != 0) return SystemError("cannot read", path);
  std::string contents;
  if (S_ISREG(attributes.st_mode) && attributes.st_size > 0) {
    contents.reserve(static_cast<size_t>(attributes.st_size) + 1);
  }
  for (;;) {
    const size_t size = contents.size();
    const size_t room = contents.capacity() > size ? contents.capacity() - size : kReadBytes;
    contents.resize(size + room);
    const ssize_t count = read(descriptor, contents.data() + size, room);
    contents.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return contents;
    if (count < 0 && errno != EINTR) return SystemError("cannot read", path);
  }
}

absl::Status WriteAll(int descriptor, absl::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t count = write(descriptor, contents.data(), contents.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return SystemError("cannot write", path);
    }
    contents.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

// Errors name `path`, which `target` is or will become.
absl::Status WriteTo(const std::string& target, absl::string_view contents, const std::string& path) {
  const int descriptor = open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kNewFileMode);
  if (descriptor < 0) return SystemError("cannot write", path);
  absl::Status status = WriteAll(descriptor, contents, path);
  if (close(descriptor) != 0 && status.ok()) status = SystemError("cannot write", path);
  return status;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  if (path == "-") return ReadAll(STDIN_FILENO, "standard input");
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return SystemError("cannot read", path);
  absl::StatusOr<std::string> contents = ReadAll(descriptor, path);
  close(descriptor);
  return contents;
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  if (path == "-") return WriteAll(STDOUT_FILENO, contents, "standard output");
  struct stat attributes;
  if (lstat(path.c_str(), &attributes) == 0 && !S_ISREG(attributes.st_mode)) return WriteTo(path, contents, path);
  const std::string unfinished = absl::StrCat(path, ".", getpid(), ".part");
  absl::Status status = WriteTo(unfinished, contents, path);
  if (status.ok() && std::rename(unfinished.c_str(), path.c_str()) != 0) status = SystemError("cannot write", path);
  if (!status.ok()) unlink(unfinished.c_str());
  return status;
}

}  // namespace tensord::cli
