// ListCalls and CancelCall.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/base/refusal.h"
#include "proto/codec/duration_codec.h"
#include "server/observe/records/open_calls.h"
#include "server/rpc/operators/admin_handlers.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::server {
namespace {

constexpr int32_t kMostListed = 1000;

v1::CallEntry EncodeCall(OpenCalls::Description call) {
  v1::CallEntry entry;
  entry.set_id(absl::StrCat(call.id));
  entry.set_method(std::string(Name(call.method)));
  entry.set_streamed(call.is_streamed);
  entry.set_tenant(std::move(call.tenant));
  entry.set_peer(std::move(call.peer));
  entry.set_request_id(std::move(call.request_id));
  *entry.mutable_age() = codec::EncodeDuration(absl::FromChrono(call.age));
  entry.set_stage(std::string(Name(call.stage)));
  entry.set_fingerprint(std::move(call.fingerprint));
  entry.set_device(std::move(call.device));
  return entry;
}

}  // namespace

void HandleListCalls(UnaryCall* call) {
  v1::ListCallsRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  if (request.limit() < 0) {
    return call->Fail(
        Refuse(Refusal::kMalformedMessage, absl::StrCat("a list cannot have ", request.limit(), " calls")));
  }
  const int32_t most = request.limit() == 0 ? kMostListed : request.limit();
  v1::ListCallsResponse response;
  for (OpenCalls::Description& open : call->parts().observers.open_calls->List()) {
    if (!request.tenant().empty() && open.tenant != request.tenant()) continue;
    if (response.calls_size() < most) *response.add_calls() = EncodeCall(std::move(open));
    response.set_count(response.count() + 1);
  }
  call->Reply(response);
}

void HandleCancelCall(UnaryCall* call) {
  v1::CancelCallRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  uint64_t id = 0;
  if (!absl::SimpleAtoi(request.id(), &id)) {
    return call->Fail(Refuse(Refusal::kMalformedMessage, "the id of a call is a number; take it from ListCalls"));
  }
  const absl::Status cancelled = call->parts().observers.open_calls->Cancel(id);
  if (!cancelled.ok()) return call->Fail(cancelled);
  call->Reply(v1::CancelCallResponse());
}

}  // namespace tensord::server
