#include "server/sessions/poisoned_handle.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ir/names.h"

namespace tensord::server {

absl::Status PoisonedHandle(absl::string_view handle, const absl::Status& first_cause) {
  const auto detail = DetailOf(first_cause);
  const std::string reason = detail.has_value() ? detail->reason : absl::StatusCodeToString(first_cause.code());
  if (IsRefusal(first_cause, Refusal::kDeviceLost)) {
    return Refuse(Refusal::kHandlePoisoned, absl::StrCat("the tensor \"", PrintableName(handle), "\" is lost, ", reason,
                                                         ": ", first_cause.message()));
  }
  return Refuse(Refusal::kHandlePoisoned, absl::StrCat("the request that should have made \"", PrintableName(handle),
                                                       "\" failed with ", reason, ": ", first_cause.message()));
}

}  // namespace tensord::server
