// OpenSession, CloseSession and DeleteTensors.
#include <string>
#include <vector>

#include "engine/base/refusal.h"
#include "proto/codec/duration_codec.h"
#include "server/rpc/calls/handlers.h"
#include "server/rpc/tensors/named_tenancy.h"
#include "server/sessions/session_store.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

void HandleOpenSession(UnaryCall* call) {
  v1::OpenSessionRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  const absl::StatusOr<absl::Duration> lease = codec::DecodeDuration(request.lease());
  if (!lease.ok()) return call->Fail(lease.status());
  if (*lease < absl::ZeroDuration()) return call->Fail(Refuse(Refusal::kMalformedMessage, "the lease is negative"));
  const absl::StatusOr<SessionPtr> session = call->parts().tensors.sessions->Open(call->caller().tenant, *lease);
  if (!session.ok()) return call->Fail(session.status());
  (*session)->NamedBy(call->call().peer());
  v1::Session response;
  response.set_id((*session)->id());
  *response.mutable_lease() = codec::EncodeDuration((*session)->lease());
  call->Reply(response);
}

void HandleCloseSession(UnaryCall* call) {
  v1::CloseSessionRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  const absl::Status closed = CloseSession(call->call(), call->record(), request.session());
  if (!closed.ok()) return call->Fail(closed);
  call->Reply(v1::CloseSessionResponse());
}

void HandleDeleteTensors(UnaryCall* call) {
  v1::DeleteTensorsRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  const absl::StatusOr<SessionPtr> session = FindSession(call->call(), call->record(), request.session());
  if (!session.ok()) return call->Fail(session.status());
  const std::vector<std::string> handles(request.handles().begin(), request.handles().end());
  v1::DeleteTensorsResponse response;
  for (std::string& handle : (*session)->Delete(handles)) response.add_missing(std::move(handle));
  call->Reply(response);
}

}  // namespace tensord::server
