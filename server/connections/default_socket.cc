#include "server/connections/default_socket.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace tensord::server {

DefaultSocket DefaultSocketOfUser() {
  const char* const runtime_folder = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_folder != nullptr && *runtime_folder != '\0') return {runtime_folder, /*is_private_folder=*/false};
  return {absl::StrCat("/tmp/tensord-", getuid()), /*is_private_folder=*/true};
}

}  // namespace tensord::server
