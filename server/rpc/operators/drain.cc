#include <optional>

#include "engine/base/refusal.h"
#include "proto/codec/duration_codec.h"
#include "server/rpc/operators/admin_handlers.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::server {

void HandleDrain(UnaryCall* call) {
  v1::DrainRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  std::optional<absl::Duration> timeout;
  if (request.has_timeout()) {
    const absl::StatusOr<absl::Duration> decoded = codec::DecodeDuration(request.timeout());
    if (!decoded.ok()) return call->Fail(decoded.status());
    if (*decoded < absl::ZeroDuration()) {
      return call->Fail(Refuse(Refusal::kMalformedMessage, "the timeout is negative"));
    }
    timeout = *decoded;
  }
  const ServiceParts& parts = call->parts();
  call->Reply(v1::DrainResponse());  // ends the call, which the drain would wait for
  parts.request_drain(timeout);
}

}  // namespace tensord::server
