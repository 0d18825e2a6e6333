#ifndef TENSORD_SERVER_SESSIONS_POISONED_HANDLE_H_
#define TENSORD_SERVER_SESSIONS_POISONED_HANDLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

// HANDLE_POISONED: says which request's failure it was, by the id of its refusal and its message.
absl::Status PoisonedHandle(absl::string_view handle, const absl::Status& first_cause);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SESSIONS_POISONED_HANDLE_H_
