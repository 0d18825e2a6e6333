// ListSessions and CloseSession of operators.
#include "proto/codec/duration_codec.h"
#include "server/rpc/operators/admin_handlers.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::server {

void HandleListSessions(UnaryCall* call) {
  v1::ListSessionsRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  v1::ListSessionsResponse response;
  for (const SessionStore::Description& session : call->parts().tensors.sessions->Describe()) {
    v1::SessionEntry* entry = response.add_sessions();
    entry->mutable_session()->set_id(session.id);
    *entry->mutable_session()->mutable_lease() = codec::EncodeDuration(session.lease);
    entry->set_tenant(session.tenant);
    entry->set_tensor_count(session.counts.handles);
    entry->set_byte_count(session.counts.bytes);
    *entry->mutable_lease_left() = codec::EncodeDuration(session.remaining);
  }
  call->Reply(response);
}

void HandleAdminCloseSession(UnaryCall* call) {
  v1::CloseSessionRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  SessionStore& sessions = *call->parts().tensors.sessions;
  const absl::Status closed = sessions.Close(sessions.OwnerOf(request.session()).value_or(""), request.session());
  if (!closed.ok()) return call->Fail(closed);
  call->Reply(v1::CloseSessionResponse());
}

}  // namespace tensord::server
