#include "tensord/connect_options.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace tensord::client {

std::string DefaultTarget() {
  const char* const named = std::getenv("TENSORD_TARGET");
  if (named != nullptr && *named != '\0') return named;
  const char* runtime_folder = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_folder != nullptr && *runtime_folder != '\0') {
    return absl::StrCat("unix:", runtime_folder, "/tensord.sock");
  }
  return absl::StrCat("unix:/tmp/tensord-", getuid(), "/tensord.sock");
}

}  // namespace tensord::client
