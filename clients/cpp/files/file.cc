#include "clients/cpp/files/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tensord::client {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr mode_t kNewFileMode = 0666;

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
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

absl::Status WriteAll(int descriptor, absl::Span<const absl::string_view> pieces, const std::string& path) {
  for (const absl::string_view piece : pieces) {
    const absl::Status written = WriteAll(descriptor, piece, path);
    if (!written.ok()) return written;
  }
  return absl::OkStatus();
}

// Errors name `path`, which `target` is or will become.
absl::Status WriteTo(const std::string& target, absl::Span<const absl::string_view> pieces, const std::string& path) {
  const int descriptor = open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kNewFileMode);
  if (descriptor < 0) return SystemError("cannot write", path);
  absl::Status status = WriteAll(descriptor, pieces, path);
  if (close(descriptor) != 0 && status.ok()) status = SystemError("cannot write", path);
  return status;
}

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  const bool is_standard = path == "-";
  const int descriptor = is_standard ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return SystemError("cannot read", path);
  InputFile file(descriptor, is_standard ? "standard input" : path, -1);
  struct stat attributes;
  if (fstat(descriptor, &attributes) != 0) return SystemError("cannot read", file.name_);
  if (S_ISREG(attributes.st_mode)) file.size_ = attributes.st_size;
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), name_(std::move(other.name_)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ > STDIN_FILENO) close(descriptor_);
}

absl::Status InputFile::Append(size_t most, std::string* to) {
  try {
    while (most > 0) {
      const size_t size = to->size(), room = std::min(most, kReadBytes);
      to->resize(size + room);
      const ssize_t count = read(descriptor_, to->data() + size, room);
      to->resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
      if (count == 0) return absl::OkStatus();
      if (count < 0 && errno != EINTR) return SystemError("cannot read", name_);
      most -= static_cast<size_t>(std::max<ssize_t>(count, 0));
    }
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name_, ": there is not enough memory for more than ", to->size(), " bytes of it"));
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  std::string contents;
  const absl::Status read = file->size() > static_cast<int64_t>(kMostFileBytes)
                                ? absl::OkStatus()
                                : file->Append(kMostFileBytes + 1, &contents);
  if (!read.ok()) return read;
  if (file->size() > static_cast<int64_t>(kMostFileBytes) || contents.size() > kMostFileBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(file->name(), " has more than ", kMostFileBytes, " bytes"));
  }
  return contents;
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  return WriteFile(path, absl::MakeConstSpan(&contents, 1));
}

absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> pieces) {
  if (path == "-") return WriteAll(STDOUT_FILENO, pieces, "standard output");
  struct stat attributes;
  if (lstat(path.c_str(), &attributes) == 0 && !S_ISREG(attributes.st_mode)) return WriteTo(path, pieces, path);
  const std::string unfinished = absl::StrCat(path, ".", getpid(), ".part");
  absl::Status status = WriteTo(unfinished, pieces, path);
  if (status.ok() && std::rename(unfinished.c_str(), path.c_str()) != 0) status = SystemError("cannot write", path);
  if (!status.ok()) unlink(unfinished.c_str());
  return status;
}

}  // namespace tensord::client
