#include "engine/base/descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>

namespace tensord {

bool WriteAll(int file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool ReadAll(int file, std::string* bytes) {
  size_t done = 0;
  while (done < bytes->size()) {
    const ssize_t count = read(file, bytes->data() + done, bytes->size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;  // it became shorter
    done += static_cast<size_t>(count);
  }
  bytes->resize(done);
  return true;
}

void ForEachName(int folder, absl::FunctionRef<void(std::string)> each) {
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return;
  DIR* const listing = fdopendir(again);
  if (listing == nullptr) {
    close(again);
    return;
  }
  while (const dirent* entry = readdir(listing)) each(entry->d_name);
  closedir(listing);
}

}  // namespace tensord
