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

// What a request names and its tenant has. A name of another tenant's is refused as one that nobody has, and told to
// the audit. `record` is the request's, which is not the call's in a stream of them.

// As SessionStore's functions of these names.
absl::StatusOr<SessionPtr> FindSession(const ServedCall& call, const RequestRecord& record, absl::string_view id);
absl::StatusOr<SessionUse> UseSession(const ServedCall& call, const RequestRecord& record, absl::string_view id);
absl::Status CloseSession(const ServedCall& call, const RequestRecord& record, absl::string_view id);

// Where a region was not found: whether it is another tenant's.
void TellOfRegion(const ServedCall& call, const RequestRecord& record, const absl::Status& status,
                  const std::string& region);
// Likewise, of those that a request names.
void TellOfRegions(const ServedCall& call, const RequestRecord& record, const absl::Status& status,
                   const v1::ExecuteRequest& request);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_TENSORS_NAMED_TENANCY_H_
