#ifndef TENSORD_SERVER_VERSION_H_
#define TENSORD_SERVER_VERSION_H_

#include "absl/strings/string_view.h"

namespace tensord::server {

// The version of this build, "0.2.0".
absl::string_view Version();

// Returns the revision of the sources of this build, with "-dirty" if they had changes; "unknown" if the build knew
// none.
absl::string_view GitRevision();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_VERSION_H_
