#include "server/version.h"

#include "server/git_revision_text.h"  // made by the build

namespace tensord::server {

absl::string_view Version() { return TENSORD_VERSION; }

absl::string_view GitRevision() { return TENSORD_GIT_REVISION; }

}  // namespace tensord::server
