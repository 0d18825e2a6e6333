#ifndef TENSORD_SERVER_GIT_REVISION_H_
#define TENSORD_SERVER_GIT_REVISION_H_

#include "absl/strings/string_view.h"

namespace tensord::server {

// The revision of the sources that this was built from, "-dirty" behind it where they had changes; "unknown" where the
// build knew none.
absl::string_view GitRevision();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_GIT_REVISION_H_
