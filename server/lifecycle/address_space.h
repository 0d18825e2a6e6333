#ifndef TENSORD_SERVER_LIFECYCLE_ADDRESS_SPACE_H_
#define TENSORD_SERVER_LIFECYCLE_ADDRESS_SPACE_H_

#include "absl/status/status.h"

namespace tensord::server {

// Fails with FAILED_PRECONDITION if the process may have too little address space (ulimit -v) to start its threads:
// libraries would end it without a reason.
absl::Status CheckAddressSpace();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_ADDRESS_SPACE_H_
