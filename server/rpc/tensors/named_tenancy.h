#ifndef TENSORD_SERVER_RPC_TENSORS_NAMED_TENANCY_H_
#define TENSORD_SERVER_RPC_TENSORS_NAMED_TENANCY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/rpc/calls/served_call.h"
#include "server/sessions/session_store.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// The things that a request names and its tenant owns. A name of another tenant's thing is refused as one that nobody
// has, and reported to the audit. `record` is the request's, which is not the call's in a stream of them.

// Calls SessionStore's functions of these names.
absl::StatusOr<SessionPtr> FindSession(const ServedCall& call, const RequestRecord& record, absl::string_view id);
absl::StatusOr<SessionUse> UseSession(const ServedCall& call, const RequestRecord& record, absl::string_view id);
absl::Status CloseSession(const ServedCall& call, const RequestRecord& record, absl::string_view id);

// Reports a region that was not found, if it belongs to another tenant.
void TellOfRegion(const ServedCall& call, const RequestRecord& record, const absl::Status& status,
                  const std::string& region);
// Reports likewise for the regions that a request names.
void TellOfRegions(const ServedCall& call, const RequestRecord& record, const absl::Status& status,
                   const v1::ExecuteRequest& request);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_TENSORS_NAMED_TENANCY_H_
