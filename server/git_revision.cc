#include "server/git_revision.h"

#include "server/git_revision_text.h"  // made by the build

namespace tensord::server {

absl::string_view GitRevision() { return TENSORD_GIT_REVISION; }

}  // namespace tensord::server
