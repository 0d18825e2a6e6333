#include "server/rpc/tensors/named_tenancy.h"

#include <optional>

#include "engine/base/refusal.h"
#include "server/rpc/calls/call_metadata.h"
#include "server/shared_memory/region_store.h"

namespace tensord::server {
namespace {

void Tell(const ServedCall& call, const RequestRecord& record, absl::string_view what,
          const std::optional<std::string>& owner) {
  const std::string& tenant = call.caller().tenant;
  if (!owner.has_value() || *owner == tenant) return;
  call.parts().admission.authenticator->NamedAnothers(record.method, call.peer(), tenant, what, *owner, IdsOf(record));
}

Session& SessionOf(const SessionPtr& session) { return *session; }
Session& SessionOf(const SessionUse& use) { return *use.session(); }

// `found` is the store's answer for the session.
template <typename Found>
Found OfSession(const ServedCall& call, const RequestRecord& record, absl::string_view id, Found found) {
  if (!found.ok()) Tell(call, record, "session", call.parts().tensors.sessions->OwnerOf(id));
  return found;
}

template <typename Found>
Found Named(const ServedCall& call, Found found) {
  if (found.ok()) SessionOf(*found).NamedBy(call.peer());
  return found;
}

}  // namespace

absl::StatusOr<SessionPtr> FindSession(const ServedCall& call, const RequestRecord& record, absl::string_view id) {
  return Named(call, OfSession(call, record, id, call.parts().tensors.sessions->Find(call.caller().tenant, id)));
}

absl::StatusOr<SessionUse> UseSession(const ServedCall& call, const RequestRecord& record, absl::string_view id) {
  return Named(call, OfSession(call, record, id, call.parts().tensors.sessions->Use(call.caller().tenant, id)));
}

absl::Status CloseSession(const ServedCall& call, const RequestRecord& record, absl::string_view id) {
  return OfSession(call, record, id, call.parts().tensors.sessions->Close(call.caller().tenant, id));
}

void TellOfRegion(const ServedCall& call, const RequestRecord& record, const absl::Status& status,
                  const std::string& region) {
  // Then there are regions.
  if (IsRefusal(status, Refusal::kRegionUnknown))
    Tell(call, record, "region", call.parts().tensors.regions->OwnerOf(region));
}

void TellOfRegions(const ServedCall& call, const RequestRecord& record, const absl::Status& status,
                   const v1::ExecuteRequest& request) {
  if (!IsRefusal(status, Refusal::kRegionUnknown)) return;
  for (const v1::Argument& argument : request.arguments()) {
    if (argument.has_shared()) TellOfRegion(call, record, status, argument.shared().region());
  }
  for (const v1::ResultOption& option : request.results()) {
    if (option.has_shared()) TellOfRegion(call, record, status, option.shared().region());
  }
}

}  // namespace tensord::server
