#ifndef TENSORD_SERVER_CONFIG_REGULAR_FILE_H_
#define TENSORD_SERVER_CONFIG_REGULAR_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace tensord::server {

struct RegularFile {
  std::string content;
  mode_t mode = 0;
};

// A small file, whole. With the path: NOT_FOUND if it cannot be opened; INVALID_ARGUMENT if it is a folder or a
// pipe, is large, or cannot be read to its end.
absl::StatusOr<RegularFile> ReadRegularFile(const std::string& path);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_REGULAR_FILE_H_
