#ifndef TENSORD_SERVER_GIT_REVISION_H_
#define TENSORD_SERVER_GIT_REVISION_H_

#include "absl/strings/string_view.h"

namespace tensord::server {

// Returns the revision of the sources of this build, with "-dirty" if they had changes; "unknown" if the build knew
// none.
absl::string_view GitRevision();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_GIT_REVISION_H_
