#ifndef TENSORD_TESTS_TESTLIB_TLS_PRIVATE_FOLDER_H_
#define TENSORD_TESTS_TESTLIB_TLS_PRIVATE_FOLDER_H_

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tensord {

// A folder for files of tokens and keys, which goes with its content.
class PrivateFolder {
 public:
  PrivateFolder();
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  std::string PathOf(absl::string_view name) const;
  // Replaces the file by one with that content, at once as a rename does. Its path.
  std::string Write(absl::string_view name, absl::string_view content, mode_t mode = 0600) const;

 private:
  std::string path_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_TLS_PRIVATE_FOLDER_H_
